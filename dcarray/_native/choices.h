/* Choices between the elements of two arrays by a condition, as a ufunc, so that threads share its loops; NumPy's `where` is none. */

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
