/* NumPy's inner loops, called at once on small arrays: what a ufunc does before and after takes longer than the
 * loop over some hundred elements.  Only where a ufunc has a loop for exactly these dtypes and makes a new array
 * of the operands' shape; anything else, and whatever raises a floating-point flag or an exception, is the
 * ufunc's to do, from the beginning and in its own words.
 *
 * The tables of a ufunc are part of NumPy's C interface (PyUFuncObject), and so is the function that makes
 * arrays. */

#include <fenv.h>
#include <float.h>
#include <math.h>

typedef void Inner(char **, const Py_ssize_t *, const Py_ssize_t *, void *);

typedef struct {
    PyObject_HEAD
    int nin, nout, nargs, identity;
    Inner **functions;
    void *const *data;
    int ntypes, reserved;
    const char *name, *types, *doc;
    void *ptr;
    PyObject *obj, *userloops;
    int core_enabled, core_num_dim_ix; /* of a generalized ufunc, whose operands have core dimensions: how many each operand has, */
    int *core_num_dims, *core_dim_ixs, *core_offsets; /* which these are, and where they begin in the second table */
} Tables;

/* What a ufunc does with operands of these dtypes (letters; 0 for no second one). */
typedef struct {
    PyObject *ufunc, *result; /* `result`: the dtype, or NULL if there is no such loop */
    char first, second;
    int rest; /* how often the ufunc is to be called before the loop is tried again */
    Inner *code;
    void *data;
} Loop;

enum { LOOPS = 512, REST = 64, MOST = 4096 }; /* MOST: elements; NumPy gives up the GIL for more */
enum { FLAGS = FE_DIVBYZERO | FE_OVERFLOW | FE_UNDERFLOW | FE_INVALID };
enum { API_VERSION = 0, API_NEW_FROM_DESCR = 94, API_SET_BASE = 282, API_NUMPY_2 = 0x02000000 }; /* in NumPy's table of functions */

/* Clear the floating-point flags, which takes longer than to look at them. */
static inline void
clear_flags(void)
{
    if (fetestexcept(FLAGS))
        feclearexcept(FLAGS);
}

/* Floating-point exceptions as NumPy's bits. */
static inline int
numpy_bits(int raised)
{
    return (raised & FE_DIVBYZERO ? 1 : 0) | (raised & FE_OVERFLOW ? 2 : 0) | (raised & FE_UNDERFLOW ? 4 : 0) |
           (raised & FE_INVALID ? 8 : 0);
}

static Loop Loops[LOOPS];
static PyObject *Loopable; /* a dict of ufuncs by name: those of which loops may be called */

/* The dtype of this number, if it compiles. */
static PyObject *
dtype_numbered(int number)
{
    for (int letter = 0; letter < 128; letter++)
        if (Known[letter].dtype != NULL && ((Descr *)Known[letter].dtype)->number == number)
            return Known[letter].dtype;
    return NULL;
}

/* Remember the loop of one of NumPy's ufuncs; 0 for another, which may hold whatever its maker gave it, and is to
 * live no longer than its maker wants. */
static int
find_loop(Loop *loop, PyObject *ufunc, char first, char second)
{
    Tables *t = (Tables *)ufunc;
    PyObject *old = loop->ufunc;
    Loop none = {ufunc, NULL, first, second, 0, NULL, NULL};
    if (t->name == NULL || PyDict_GetItemString(Loopable, t->name) != ufunc)
        return 0;
    Py_INCREF(ufunc);
    *loop = none;
    Py_XDECREF(old);
    if (t->nout != 1 || t->nin != (second ? 2 : 1))
        return 1;
    for (int k = 0; k < t->ntypes; k++) {
        const char *types = t->types + k * t->nargs;
        if (dtype_numbered(types[0]) != Known[(int)first].dtype ||
            (second && dtype_numbered(types[1]) != Known[(int)second].dtype))
            continue;
        loop->result = dtype_numbered(types[t->nin]);
        loop->code = t->functions[k];
        loop->data = t->data == NULL ? NULL : t->data[k];
        return 1;
    }
    return 1;
}

static inline int
is_loop(Loop *loop, PyObject *ufunc, char first, char second)
{
    return loop->ufunc == ufunc && loop->first == first && loop->second == second;
}

/* A loop that is not in the table: of three that fall together the one that was found first is pushed out. */
Py_NO_INLINE static int
add_loop(Loop *loop, PyObject *ufunc, char first, char second)
{
    Loop chosen = {0}, old = loop[1];
    if (!find_loop(&chosen, ufunc, first, second))
        return 0;
    loop[1] = loop[0];
    loop[0] = chosen;
    Py_XDECREF(old.ufunc);
    return 1;
}

/* The loop, as long as no other one is looked for and no other thread runs; or NULL, without an exception. */
static inline Loop *
loop_of(PyObject *ufunc, char first, char second)
{
    Loop *loop = Loops + (((uintptr_t)ufunc >> 4) + (unsigned char)first * 7 + (unsigned char)second * 31) % (LOOPS / 2) * 2;
    if (!is_loop(loop, ufunc, first, second)) {
        if (is_loop(loop + 1, ufunc, first, second))
            loop++;
        else if (!add_loop(loop, ufunc, first, second))
            return NULL;
    }
    if (loop->rest > 0) {
        loop->rest--;
        return NULL;
    }
    return loop->result == NULL ? NULL : loop;
}

/* Can a loop go through this array by one stride? */
static inline int
has_one_stride(Array *a)
{
    return (a->flags & ALIGNED) && ((a->flags & IN_C_ORDER) || a->ndim == 1) && is_known(a->dtype);
}

/* A number as NumPy would have it beside an array of this dtype; it may decline. */
static int
store_number(PyObject *x, Descr *dtype, char *place)
{
    int whole = PyLong_CheckExact(x), overflow;
    double value;
    long long integer;
    if (Py_TYPE(x) == dtype->scalar && strchr("?bBhHiIlLfd", dtype->type)) { /* what it is follows its head */
        memcpy(place, (char *)x + sizeof(PyObject), Known[dtype->type & 127].width);
        return 1;
    }
    if (!whole && !PyFloat_CheckExact(x))
        return 0;
    if (dtype->kind == 'f' || dtype->kind == 'c') {
        value = whole ? PyLong_AsDouble(x) : PyFloat_AS_DOUBLE(x);
        if (value == -1.0 && PyErr_Occurred()) {
            PyErr_Clear();
            return 0;
        }
        if (whole && fabs(value) > 9e18)
            return 0; /* logical ufuncs want Python's ints to be C's, whatever is beside them */
        memset(place, 0, 16);
        if (dtype->type == 'd' || dtype->type == 'D')
            memcpy(place, &value, sizeof(value));
        else if (dtype->type == 'f' && fabs(value) <= FLT_MAX) {
            float narrow = (float)value;
            if (narrow == 0 && value != 0)
                return 0; /* which is true to logical ufuncs */
            memcpy(place, &narrow, sizeof(narrow));
        }
        else
            return 0;
        return 1;
    }
    if (!whole || (dtype->kind != 'i' && dtype->kind != 'u') || dtype->type == 'q' || dtype->type == 'Q')
        return 0; /* beside numbers, some ufuncs take the twins `q` and `Q` for `l` and `L` */
    integer = PyLong_AsLongLongAndOverflow(x, &overflow);
    if (overflow || (integer < 0 && dtype->kind == 'u'))
        return 0;
#define PLACE(width, signed_type, unsigned_type)                                                      \
    case width: {                                                                                     \
        signed_type narrow = (signed_type)integer;                                                    \
        if (dtype->kind == 'i' ? narrow != integer : (long long)(unsigned_type)integer != integer)    \
            return 0;                                                                                 \
        memcpy(place, &narrow, width);                                                                \
        return 1;                                                                                     \
    }
    switch (Known[dtype->type & 127].width) {
        PLACE(1, int8_t, uint8_t)
        PLACE(2, int16_t, uint16_t)
        PLACE(4, int32_t, uint32_t)
        PLACE(8, int64_t, uint64_t)
    }
    return 0;
}

/* What the loop makes of its operands; NULL, without an exception, where the ufunc is to be called after all. */
static inline PyObject *
call_loop(Loop *loop, Array *like, Py_ssize_t n, char **pointers, Py_ssize_t *strides)
{
    PyObject *r = NewArray(PlainClass, Py_NewRef(loop->result), like->ndim, like->shape, NULL, NULL, 0, NULL);
    int last = loop->second ? 2 : 1;
    if (r == NULL) {
        PyErr_Clear();
        return NULL;
    }
    pointers[last] = ((Array *)r)->data;
    strides[last] = Known[((Descr *)loop->result)->type & 127].width;
    clear_flags();
    loop->code(pointers, &n, strides, loop->data);
    if (!fetestexcept(FLAGS) && !PyErr_Occurred())
        return r;
    PyErr_Clear();
    loop->rest = REST;
    Py_DECREF(r);
    return NULL;
}

/* The ufunc of a small plain array, or of two operands of which one is; NULL, without an exception, if it is to be called. */
static PyObject *
by_small_loop(PyObject *ufunc, PyObject *p, PyObject *q)
{
    Array *a = (Array *)p, *b = (Array *)q, *like = a;
    char *pointers[3], number[16];
    Py_ssize_t strides[3] = {0, 0, 0}, n;
    Loop *loop;
    if (NewArray == NULL || ufunc == NULL)
        return NULL;
    if (Py_TYPE(p) != PlainClass) {
        if (q == NULL || Py_TYPE(q) != PlainClass)
            return NULL;
        like = b;
    }
    if (!has_one_stride(like) || (n = elements_of((PyObject *)like)) == 0 || like->ndim == 0 || n > MOST)
        return NULL;
    if (q == NULL)
        loop = loop_of(ufunc, a->dtype->type, 0);
    else if (like == b)
        loop = loop_of(ufunc, b->dtype->type, b->dtype->type);
    else if (Py_TYPE(q) != PlainClass)
        loop = loop_of(ufunc, a->dtype->type, a->dtype->type);
    else {
        if (!has_one_stride(b) || a->ndim != b->ndim || memcmp(a->shape, b->shape, a->ndim * sizeof(Py_ssize_t)) != 0)
            return NULL;
        loop = loop_of(ufunc, a->dtype->type, b->dtype->type);
    }
    if (loop == NULL)
        return NULL;
    pointers[0] = pointers[1] = number;
    if (Py_TYPE(p) == PlainClass) {
        pointers[0] = a->data;
        strides[0] = a->ndim == 1 ? a->strides[0] : Known[a->dtype->type & 127].width;
    }
    else if (!store_number(p, like->dtype, number))
        return NULL;
    if (q != NULL && Py_TYPE(q) == PlainClass) {
        pointers[1] = b->data;
        strides[1] = b->ndim == 1 ? b->strides[0] : Known[b->dtype->type & 127].width;
    }
    else if (q != NULL && !store_number(q, like->dtype, number))
        return NULL;
    return call_loop(loop, like, n, pointers, strides);
}

#include "out_arguments.h"

/* The ufuncs of operators, by name. */
#define OF_OPERATORS(X)                                                                              \
    X(add) X(subtract) X(multiply) X(divide) X(floor_divide) X(remainder) X(bitwise_and) X(bitwise_or) \
    X(bitwise_xor) X(left_shift) X(right_shift) X(negative) X(positive) X(absolute) X(invert) X(less) \
    X(less_equal) X(equal) X(not_equal) X(greater) X(greater_equal)
#define DECLARE(name) static PyObject *np_##name;
static PyObject *np_, *np_matmul; /* of operators that have none; and one of which no loop is called */
OF_OPERATORS(DECLARE)
#define OF_NUMPY(name) np_##name = PyDict_GetItemString(Loopable, #name); /* NULL: never called */

/* Keep the dtypes that compile. */
static int
set_dtypes(PyObject *dtypes)
{
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(dtypes); k++) {
        PyObject *dtype = PyTuple_GET_ITEM(dtypes, k);
        int letter = ((Descr *)dtype)->type & 127;
        if ((Known[letter].width = number_in(dtype, ItemSize)) < 0)
            return -1;
        Known[letter].dtype = Py_NewRef(dtype);
    }
    return 0;
}

/* find_loops(api, ufuncs, dtypes): the inner loops of these ufuncs (by name) for these dtypes may be called, with `api`, NumPy's table
 * of functions.  False if they may not. */
static PyObject *
find_loops(PyObject *module, PyObject *args)
{
    PyObject *capsule, *ufuncs, *add, *dtypes, *numpy = PyImport_AddModule("numpy");
    void **api;
    Tables *t;
    if (!PyArg_ParseTuple(args, "OO!O!", &capsule, &PyDict_Type, &ufuncs, &PyTuple_Type, &dtypes))
        return NULL;
    api = PyCapsule_GetPointer(capsule, NULL);
    if (api == NULL || set_dtypes(dtypes) < 0)
        return NULL;
    add = PyDict_GetItemString(ufuncs, "add");
    t = (Tables *)add;
    if (NewArray != NULL || add == NULL || numpy == NULL || ((unsigned (*)(void))api[API_VERSION])() != API_NUMPY_2 ||
        t->nin != 2 || t->nout != 1 || t->nargs != 3 || strcmp(t->name, "add") != 0)
        Py_RETURN_FALSE;
    Loopable = Py_NewRef(ufuncs);
    OF_OPERATORS(OF_NUMPY)
    NewArray = (Maker *)api[API_NEW_FROM_DESCR];
    SetBase = (Based *)api[API_SET_BASE];
    np_matmul = Py_XNewRef(PyDict_GetItemString(PyModule_GetDict(numpy), "matmul"));
    find_product_loops(np_matmul);
    AsResult = (Returned *)api[API_RETURN];
    Py_RETURN_TRUE;
}
