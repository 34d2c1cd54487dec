/* Choices between the elements of two arrays by a condition, as a ufunc, so that threads share its loops; NumPy's `where` is none, and
 * is replaced by it for large arrays. */

/* Without branches, which nobody could predict: all bits of the one or of the other. */
#define CHOICE(type, name)                                                                                   \
    static inline type name##_of(unsigned char condition, type x, type y)                                    \
    {                                                                                                        \
        type mask = (type)-(type)(condition != 0);                                                           \
        return (x & mask) | (y & (type)~mask);                                                               \
    }                                                                                                        \
    static void name(char **pointers, const Py_ssize_t *n, const Py_ssize_t *strides, void *data)            \
    {                                                                                                        \
        const unsigned char *c = (const unsigned char *)pointers[0];                                         \
        const char *p = pointers[1], *q = pointers[2];                                                       \
        char *r = pointers[3];                                                                               \
        Py_ssize_t count = *n, a = strides[0], s = strides[1], t = strides[2], u = strides[3];               \
        const Py_ssize_t size = sizeof(type);                                                                \
        type one, two;                                                                                       \
        if (count <= 0)                                                                                      \
            return;                                                                                          \
        one = *(const type *)p;                                                                              \
        two = *(const type *)q;                                                                              \
        if (a == 1 && u == size && s == size && t == size)                                                   \
            for (Py_ssize_t k = 0; k < count; k++)                                                           \
                ((type *)r)[k] = name##_of(c[k], ((const type *)p)[k], ((const type *)q)[k]);                \
        else if (a == 1 && u == size && s == size && t == 0)                                                 \
            for (Py_ssize_t k = 0; k < count; k++)                                                           \
                ((type *)r)[k] = name##_of(c[k], ((const type *)p)[k], two);                                 \
        else if (a == 1 && u == size && s == 0 && t == size)                                                 \
            for (Py_ssize_t k = 0; k < count; k++)                                                           \
                ((type *)r)[k] = name##_of(c[k], one, ((const type *)q)[k]);                                 \
        else                                                                                                 \
            for (Py_ssize_t k = 0; k < count; k++, c += a, p += s, q += t, r += u)                           \
                *(type *)r = name##_of(*c, *(const type *)p, *(const type *)q);                              \
    }
CHOICE(uint8_t, choose_1)
CHOICE(uint16_t, choose_2)
CHOICE(uint32_t, choose_4)
CHOICE(uint64_t, choose_8)

/* Both halves of elements of 16 bytes. */
static void
choose_16(char **pointers, const Py_ssize_t *n, const Py_ssize_t *strides, void *data)
{
    for (int half = 0; half < 16; half += 8) {
        char *halves[4] = {pointers[0], pointers[1] + half, pointers[2] + half, pointers[3] + half};
        choose_8(halves, n, strides, data);
    }
}

typedef PyObject *UfuncMaker(Inner **, void *const *, const char *, int, int, int, int, const char *, const char *, int);
enum { API_MAKE_UFUNC = 1, CHOICES = 17, NO_IDENTITY = -1 };

/* make_choice(api): the ufunc `where(condition, x, y)`; `api` is NumPy's table of functions for ufuncs. */
static PyObject *
make_choice(PyObject *module, PyObject *capsule)
{
    static Inner *loops[CHOICES];
    static void *data[CHOICES];
    static char types[4 * CHOICES];
    void **api = PyCapsule_GetPointer(capsule, NULL);
    int many = 0;
    for (int number = 0; api != NULL && number <= 23; number++) {
        PyObject *dtype = dtype_numbered(number);
        Py_ssize_t width = dtype == NULL ? 0 : Known[((Descr *)dtype)->type & 127].width;
        if (width == 0 || many == CHOICES)
            continue;
        loops[many] = width == 1 ? choose_1 : width == 2 ? choose_2 : width == 4 ? choose_4 : width == 8 ? choose_8 : choose_16;
        memset(types + 4 * many, number, 4);
        types[4 * many++] = 0; /* of booleans */
    }
    return api == NULL ? NULL : ((UfuncMaker *)api[API_MAKE_UFUNC])(loops, data, types, many, 3, 1, NO_IDENTITY, "where", NULL, 0);
}

typedef PyObject *FastFunction(PyObject *, PyObject *const *, Py_ssize_t);
static FastFunction *Where; /* NumPy's own function */
static PyObject *Choice;

/* Is this an array of the shape of the condition, or a number that is a double beside doubles?  `*dtype` is that of the value before, if
 * there is one, and has to be the same. */
static int
is_choice(PyObject *x, Array *condition, PyObject **dtype)
{
    Array *a = (Array *)x;
    int overflow = 0, is_array = Py_TYPE(x) == PlainClass;
    if (is_array ? !is_known(a->dtype) || !(a->flags & IN_C_ORDER) || a->ndim != condition->ndim ||
                       memcmp(a->shape, condition->shape, a->ndim * sizeof(Py_ssize_t)) != 0
                 : !PyFloat_CheckExact(x) && !(PyLong_CheckExact(x) && llabs(PyLong_AsLongLongAndOverflow(x, &overflow)) < 1LL << 53))
        return 0;
    PyObject *own = is_array ? (PyObject *)a->dtype : Known['d'].dtype;
    *dtype = *dtype == NULL ? own : *dtype;
    return own == *dtype && !overflow;
}

static PyObject *
choose(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    Array *condition = count == 3 ? (Array *)args[0] : NULL;
    PyObject *dtype = NULL;
    if (condition != NULL && Py_TYPE(condition) == PlainClass && condition->dtype->type == '?' && (condition->flags & IN_C_ORDER) &&
        elements_of(args[0]) >= LEAST_SHARED && !(PyLong_CheckExact(args[1]) && PyLong_CheckExact(args[2])) && is_choice(args[1], condition, &dtype) && is_choice(args[2], condition, &dtype))
        return PyObject_Vectorcall(Choice, args, 3, NULL);
    return Where(module, args, count);
}

/* choose_by_loops(where, choice): from now on NumPy's function `where` calls the ufunc `choice` for large arrays.  False if it is another
 * function than this is made for. */
static PyObject *
choose_by_loops(PyObject *module, PyObject *args)
{
    PyObject *where, *choice;
    if (!PyArg_ParseTuple(args, "OO", &where, &choice))
        return NULL;
    if (Where != NULL || !PyCFunction_CheckExact(where) || ((PyCFunctionObject *)where)->m_ml->ml_flags != METH_FASTCALL)
        Py_RETURN_FALSE;
    Choice = Py_NewRef(choice);
    Where = (FastFunction *)(void (*)(void))((PyCFunctionObject *)where)->m_ml->ml_meth;
    ((PyCFunctionObject *)where)->m_ml->ml_meth = (PyCFunction)(void (*)(void))choose;
    Py_RETURN_TRUE;
}
