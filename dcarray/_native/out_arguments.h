/* Inner loops that write into a given array, and matrix products. */

enum { SPARE = 1 << 14 }; /* bytes of what is overwritten that can be put back */

/* Has an array the same elements, one after the other, as another, or none of its memory? */
static inline int
is_apart_or_equal(Array *a, Py_ssize_t step, Array *out, Py_ssize_t width, Py_ssize_t n)
{
    char *first = a->data, *last = a->data + step * (n - 1), *least = first < last ? first : last,
         *most = (first < last ? last : first) + Known[a->dtype->type & 127].width;
    return (first == out->data && step == width && Known[a->dtype->type & 127].width == width) || most <= out->data ||
           out->data + n * width <= least;
}

/* As `by_small_loop`, into an array in C's order: 1; 0, without an exception, if the ufunc is to be called, and then nothing has
 * changed. */
static int
by_loop_into(PyObject *ufunc, PyObject *p, PyObject *q, PyObject *into)
{
    static char kept[SPARE];
    Array *a = (Array *)p, *b = (Array *)q, *out = (Array *)into;
    char *pointers[3], number[16];
    Py_ssize_t strides[3], width, n;
    PyObject *operands[2] = {p, q};
    Loop *loop;
    int count = q == NULL ? 1 : 2, alike = 0;
    if (NewArray == NULL || ufunc == NULL || Py_TYPE(into) != PlainClass || (out->flags & (WRITEABLE | WARNS)) != WRITEABLE ||
        !(out->flags & IN_C_ORDER) || out->ndim == 0 || !has_one_stride(out))
        return 0;
    n = elements_of(into);
    width = Known[out->dtype->type & 127].width;
    if (n == 0 || n > MOST || n * width > SPARE || (Py_TYPE(p) != PlainClass && (q == NULL || Py_TYPE(q) != PlainClass)))
        return 0;
    for (int k = 0; k < count; k++) {
        Array *one = (Array *)operands[k];
        if (Py_TYPE(operands[k]) != PlainClass)
            continue;
        if (!has_one_stride(one) || one->ndim != out->ndim || memcmp(one->shape, out->shape, out->ndim * sizeof(Py_ssize_t)) != 0)
            return 0;
        pointers[k] = one->data;
        strides[k] = one->ndim == 1 ? one->strides[0] : Known[one->dtype->type & 127].width;
        if (!is_apart_or_equal(one, strides[k], out, width, n))
            return 0;
        alike |= one->data == out->data;
    }
    if (q == NULL)
        loop = loop_of(ufunc, a->dtype->type, 0);
    else
        loop = loop_of(ufunc, (Py_TYPE(p) == PlainClass ? a : b)->dtype->type, (Py_TYPE(q) == PlainClass ? b : a)->dtype->type);
    if (loop == NULL || loop->result != (PyObject *)out->dtype)
        return 0;
    for (int k = 0; k < count; k++)
        if (Py_TYPE(operands[k]) != PlainClass) {
            if (!store_number(operands[k], ((Array *)operands[1 - k])->dtype, number))
                return 0;
            pointers[k] = number;
            strides[k] = 0;
        }
    pointers[count] = out->data;
    strides[count] = width;
    if (alike)
        memcpy(kept, out->data, n * width);
    clear_flags();
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
typedef PyObject *Returned(PyObject *);
enum { API_RETURN = 76, SLIGHT = 1 << 15 }; /* in NumPy's table of functions; multiplications */
static Returned *AsResult; /* PyArray_Return; NULL as long as NumPy's C interface is not to be used */
static struct {
    Inner *code;
    void *data;
} Products[128]; /* the loops of `matmul` whose operands and result have one dtype, by its letter */

/* Remember the loops of `matmul`. */
static void
find_product_loops(PyObject *matmul)
{
    Tables *t = (Tables *)matmul;
    if (matmul == NULL || t->nin != 2 || t->nout != 1 || t->name == NULL || strcmp(t->name, "matmul") != 0)
        return;
    for (int k = 0; k < t->ntypes; k++) {
        const char *types = t->types + 3 * k;
        PyObject *dtype = dtype_numbered(types[0]);
        if (dtype != NULL && types[0] == types[1] && types[0] == types[2]) {
            Products[((Descr *)dtype)->type & 127].code = t->functions[k];
            Products[((Descr *)dtype)->type & 127].data = t->data == NULL ? NULL : t->data[k];
        }
    }
}

/* The product of two vectors or matrices by the loop that `matmul` would call, in the same way; NULL, without an
 * exception, if `matmul` is to be called. */
static PyObject *
matmul_by_loop(PyObject *p, PyObject *q)
{
    Array *a = (Array *)p, *b = (Array *)q;
    Py_ssize_t shape[2], sizes[4], steps[9] = {0}, width;
    int rows, columns, letter;
    PyObject *r;
    PyThreadState *state = NULL;
    char *pointers[3];
    if (AsResult == NULL || Py_TYPE(p) != PlainClass || Py_TYPE(q) != PlainClass || a->dtype != b->dtype || !is_known(a->dtype) ||
        !(a->flags & b->flags & ALIGNED) || a->ndim < 1 || a->ndim > 2 || b->ndim < 1 || b->ndim > 2)
        return NULL;
    letter = a->dtype->type & 127;
    rows = a->ndim == 2;
    columns = b->ndim == 2;
    if (Products[letter].code == NULL || a->shape[rows] != b->shape[0] || elements_of(p) == 0 || elements_of(q) == 0)
        return NULL;
    width = Known[letter].width;
    sizes[0] = 1;
    sizes[1] = shape[0] = rows ? a->shape[0] : 1; /* what a vector does not have is one step of nothing */
    sizes[2] = b->shape[0];
    sizes[3] = columns ? b->shape[1] : 1;
    shape[rows] = sizes[3];
    steps[3] = rows ? a->strides[0] : 0;
    steps[4] = a->strides[rows];
    steps[5] = b->strides[0];
    steps[6] = columns ? b->strides[1] : 0;
    steps[7] = rows ? width * (columns ? sizes[3] : 1) : 0;
    steps[8] = columns ? width : 0;
    r = NewArray(PlainClass, Py_NewRef((PyObject *)a->dtype), rows + columns, shape, NULL, NULL, 0, NULL);
    if (r == NULL) {
        PyErr_Clear();
        return NULL;
    }
    pointers[0] = a->data;
    pointers[1] = b->data;
    pointers[2] = ((Array *)r)->data;
    Py_INCREF(p);
    Py_INCREF(q);
    clear_flags();
    if ((double)sizes[1] * (double)sizes[2] * (double)sizes[3] > SLIGHT)
        state = PyEval_SaveThread();
    Products[letter].code(pointers, sizes, steps, Products[letter].data);
    if (state != NULL)
        PyEval_RestoreThread(state);
    Py_DECREF(p);
    Py_DECREF(q);
    if (!fetestexcept(FLAGS) && !PyErr_Occurred())
        return AsResult(r);
    PyErr_Clear();
    Py_DECREF(r);
    return NULL;
}
