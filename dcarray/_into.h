/* Loops that write into an array that is there, and products of few elements.  Included where what it uses is declared. */

enum { SPARE = 1 << 14 }; /* bytes of what is overwritten that can be put back */

/* Has an array the same elements, one after the other, as another, or none of its memory? */
static inline int
apart_or_alike(Array *a, Py_ssize_t step, Array *out, Py_ssize_t width, Py_ssize_t n)
{
    char *first = a->data, *last = a->data + step * (n - 1), *least = first < last ? first : last,
         *most = (first < last ? last : first) + Known[a->dtype->type & 127].width;
    return (first == out->data && step == width && Known[a->dtype->type & 127].width == width) || most <= out->data || out->data + n * width <= least;
}

/* As `by_loop`, into an array in C's order: 1; 0, without an exception, if the ufunc is to be called, and then nothing has
 * changed. */
static int
into_by_loop(PyObject *ufunc, PyObject *p, PyObject *q, PyObject *into)
{
    static char kept[SPARE];
    Array *a = (Array *)p, *b = (Array *)q, *out = (Array *)into;
    char *pointers[3], number[16];
    Py_ssize_t strides[3], width, n;
    PyObject *operands[2] = {p, q};
    Loop *loop;
    int count = q == NULL ? 1 : 2, alike = 0;
    if (NewArray == NULL || ufunc == NULL || Py_TYPE(into) != Plain || (out->flags & (WRITEABLE | WARNS)) != WRITEABLE ||
        !(out->flags & IN_C_ORDER) || out->ndim == 0 || !runs(out))
        return 0;
    n = elements_of(into);
    width = Known[out->dtype->type & 127].width;
    if (n == 0 || n > MOST || n * width > SPARE || (Py_TYPE(p) != Plain && (q == NULL || Py_TYPE(q) != Plain)))
        return 0;
    for (int k = 0; k < count; k++) {
        Array *one = (Array *)operands[k];
        if (Py_TYPE(operands[k]) != Plain)
            continue;
        if (!runs(one) || one->ndim != out->ndim || memcmp(one->shape, out->shape, out->ndim * sizeof(Py_ssize_t)) != 0)
            return 0;
        pointers[k] = one->data;
        strides[k] = one->ndim == 1 ? one->strides[0] : Known[one->dtype->type & 127].width;
        if (!apart_or_alike(one, strides[k], out, width, n))
            return 0;
        alike |= one->data == out->data;
    }
    if (q == NULL)
        loop = loop_of(ufunc, a->dtype->type, 0);
    else
        loop = loop_of(ufunc, (Py_TYPE(p) == Plain ? a : b)->dtype->type, (Py_TYPE(q) == Plain ? b : a)->dtype->type);
    if (loop == NULL || loop->result != (PyObject *)out->dtype)
        return 0;
    for (int k = 0; k < count; k++)
        if (Py_TYPE(operands[k]) != Plain) {
            if (!placed(operands[k], ((Array *)operands[1 - k])->dtype, number))
                return 0;
            pointers[k] = number;
            strides[k] = 0;
        }
    pointers[count] = out->data;
    strides[count] = width;
    if (alike)
        memcpy(kept, out->data, n * width);
    if (fetestexcept(FLAGS))
        feclearexcept(FLAGS);
    loop->code(pointers, &n, strides, loop->data);
    if (!fetestexcept(FLAGS) && !PyErr_Occurred())
        return 1;
    PyErr_Clear();
    loop->rest = REST;
    if (alike)
        memcpy(out->data, kept, n * width);
    return 0;
}

/* ---- products ---------------------------------------------------------------------------------- */
typedef PyObject *Dotted(PyObject *, PyObject *, PyObject *);
typedef PyObject *Returned(PyObject *);
enum { API_RETURN = 76, API_PRODUCT = 280 }; /* in NumPy's table of functions */
static Dotted *Dot; /* PyArray_MatrixProduct2; NULL as long as NumPy's C interface is not to be used */
static Returned *AsResult; /* PyArray_Return */

/* An array on which BLAS works as it is, and with at least two elements along each axis. */
static inline int
for_blas(Array *a)
{
    if ((a->flags & (ALIGNED | IN_C_ORDER)) != (ALIGNED | IN_C_ORDER) || a->ndim < 1 || a->ndim > 2)
        return 0;
    for (int k = 0; k < a->ndim; k++)
        if (a->shape[k] < 2)
            return 0;
    return 1;
}

/* The product of a vector and a vector or a matrix by `dot`, which calls the same function of BLAS with the same arguments
 * as `matmul`, sooner, but without a look at floating-point flags; NULL, without an exception, if it is for `matmul`. */
static PyObject *
dotted(PyObject *p, PyObject *q)
{
    Array *a = (Array *)p, *b = (Array *)q;
    PyObject *r;
    if (Dot == NULL || Py_TYPE(p) != Plain || Py_TYPE(q) != Plain || a->dtype != b->dtype || !is_known(a->dtype) ||
        (a->dtype->type != 'd' && a->dtype->type != 'f') || !for_blas(a) || !for_blas(b) || a->ndim + b->ndim > 3 ||
        a->shape[a->ndim - 1] != b->shape[0])
        return NULL;
    if (fetestexcept(FLAGS))
        feclearexcept(FLAGS);
    r = Dot(p, q, NULL);
    if (r != NULL && !fetestexcept(FLAGS))
        return AsResult(r);
    PyErr_Clear();
    Py_XDECREF(r);
    return NULL;
}
