/* Shapes of NumPy's arrays, read where they are: asking for the attribute would cost as much as an addition.
 * What they begin with is part of NumPy's C interface (PyArrayObject_fields); `has_known_layout` looks anyway. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

typedef struct {
    PyObject_HEAD
    PyTypeObject *scalar;
    char kind, type, byteorder, unused;
    int number;
} Descr;

typedef struct {
    PyObject_HEAD
    char *data;
    int ndim;
    Py_ssize_t *shape, *strides;
    PyObject *base;
    Descr *dtype;
    int flags;
} Array;

enum { IN_C_ORDER = 1, ALIGNED = 0x100, WRITEABLE = 0x400, WARNS = 1 << 31 }; /* flags; the last: of being written */

typedef PyObject *Maker(PyTypeObject *, PyObject *, int, const Py_ssize_t *, const Py_ssize_t *, void *, int, PyObject *);
typedef int Based(PyObject *, PyObject *);
static Maker *NewArray; /* PyArray_NewFromDescr; NULL as long as NumPy's C interface is not to be used */
static Based *SetBase;  /* PyArray_SetBaseObject */

/* The dtypes that compile, by their letter, and the bytes of an element. */
static struct {
    PyObject *dtype;
    Py_ssize_t width;
} Known[128];

/* Is this one of them, with nothing else to it? */
static inline int
is_known(Descr *dtype)
{
    return Known[dtype->type & 127].dtype == (PyObject *)dtype;
}

/* Do arrays of this class begin so?  -1 with an exception. */
static int
has_known_layout(PyObject *cls)
{
    PyObject *array = PyObject_CallFunction(cls, "((nn)s)", (Py_ssize_t)2, (Py_ssize_t)3, "float32");
    PyObject *view = array == NULL ? NULL : PyObject_GetAttrString(array, "T");
    Array *a = (Array *)array, *v = (Array *)view;
    int known = view == NULL ? -1 : a->ndim == 2 && a->shape[0] == 2 && a->shape[1] == 3;
    if (known > 0)
        known = a->strides[0] == 12 && a->strides[1] == 4 && a->base == NULL && v->base == array &&
                a->dtype->kind == 'f' && a->dtype->type == 'f' && a->dtype->byteorder == '=' && a->dtype->number == 11 &&
                (a->flags & 0x503) == (IN_C_ORDER | ALIGNED | WRITEABLE) && (v->flags & 0x503) == 0x502;
    Py_XDECREF(array);
    Py_XDECREF(view);
    return known;
}

static inline PyObject *
base_of(PyObject *array)
{
    return ((Array *)array)->base;
}

/* Is this one of the dtypes that are compiled? */
static inline int
usual_dtype(PyObject *array)
{
    Array *a = (Array *)array;
    return (a->dtype->byteorder == '=' || a->dtype->byteorder == '|') &&
           strchr("?bBhHiIlLqQefdFD", a->dtype->type) != NULL;
}

static inline Py_ssize_t
elements_of(PyObject *array)
{
    Array *a = (Array *)array;
    Py_ssize_t n = 1;
    for (int k = 0; k < a->ndim; k++)
        n *= a->shape[k];
    return n;
}

/* Its shape as a tuple, as NumPy gives it. */
static PyObject *
shape_of(PyObject *array)
{
    Array *a = (Array *)array;
    PyObject *shape = PyTuple_New(a->ndim);
    for (int k = 0; shape != NULL && k < a->ndim; k++) {
        PyObject *length = PyLong_FromSsize_t(a->shape[k]);
        set_or_clear(&shape, k, length);
    }
    return shape;
}

/* The elements of two arrays that are broadcast together, or of their matrix product, if these are more than `most` and
 * neither has so many; else 0. */
static inline Py_ssize_t
broadcast_size(PyObject *p, PyObject *q, Py_ssize_t most, int multiplied)
{
    Array *a = (Array *)p, *b = (Array *)q;
    int ndim = a->ndim > b->ndim ? a->ndim : b->ndim;
    Py_ssize_t n = 1, all;
    for (int k = 1; k <= ndim; k++) {
        Py_ssize_t one = k <= a->ndim ? a->shape[a->ndim - k] : 1, two = k <= b->ndim ? b->shape[b->ndim - k] : 1;
        if (multiplied && k <= 2) /* columns of the second, and rows of the first; a single axis is summed over */
            n *= k == 1 ? (b->ndim > 1 ? two : 1) : (a->ndim > 1 ? one : 1);
        else
            n *= one > two ? one : two;
    }
    if (n <= most)
        return 0;
    all = elements_of(p);
    return n > all && n > elements_of(q) ? n : 0;
}
