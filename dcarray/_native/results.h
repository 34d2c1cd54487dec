/* NumPy's results as handles, small or large. */

/* A small array; takes over the reference to `a`. */
static PyObject *
small_handle(PyObject *a)
{
    PyObject *x = new_small();
    if (x == NULL) {
        Py_DECREF(a);
        return NULL;
    }
    AT(x, Small) = a;
    return x;
}

/* Is its dtype one that compiles, with nothing else to it? */
static int
known_dtype(PyObject *array)
{
    return is_known(((Array *)array)->dtype);
}

/* Is `b` all that there is of the memory of `a`, which nobody else has?  So NumPy gives what it has reshaped. */
static int
is_reshape_of(Array *a, Array *b)
{
    return Py_TYPE(b) == PlainClass && Py_REFCNT(b) == 1 && b->base == NULL && b->data == a->data && b->dtype == a->dtype &&
           elements_of((PyObject *)a) == elements_of((PyObject *)b);
}

/* Has NumPy made this array for us alone, as kernels want it? */
static int
is_fresh(PyObject *r)
{
    Array *a = (Array *)r;
    Py_ssize_t step;
    if (!known_dtype(r) || (a->base != NULL && !is_reshape_of(a, (Array *)a->base)))
        return 0;
    step = Known[a->dtype->type & 127].width;
    for (int k = a->ndim - 1; k >= 0; k--) {
        if (a->strides[k] != step && a->shape[k] != 1) /* where there is one, no step is ever taken */
            return 0;
        step *= a->shape[k];
    }
    return 1;
}

/* A new store without memory, with the slots of `Example` but for these; NULL with an exception. */
static PyObject *
new_store(PyObject *shape, PyObject *dtype, Py_ssize_t elements)
{
    PyTypeObject *type = (PyTypeObject *)Stores;
    PyObject *store = type->tp_alloc(type, 0);
    PyObject *letter = PyObject_GetAttr(dtype, CharName), *size = PyLong_FromSsize_t(elements);
    for (PyMemberDef *m = type->tp_members; store != NULL && m->name != NULL; m++)
        AT(store, m->offset) = Py_XNewRef(AT(Example, m->offset));
    if (store == NULL || letter == NULL || size == NULL) {
        Py_XDECREF(letter);
        Py_XDECREF(size);
        Py_XDECREF(store);
        return NULL;
    }
    Py_XSETREF(AT(store, Geometry), Py_NewRef(shape));
    Py_XSETREF(AT(store, Dtype), Py_NewRef(dtype));
    Py_XSETREF(AT(store, Char), letter);
    Py_XSETREF(AT(store, Size), size);
    return store;
}

/* The store of the memory of a fresh array. */
static PyObject *
store_with(PyObject *r, PyObject *shape)
{
    PyObject *store = new_store(shape, (PyObject *)((Array *)r)->dtype, elements_of(r));
    PyObject *address = store == NULL ? NULL : PyLong_FromVoidPtr(((Array *)r)->data);
    if (address == NULL)
        Py_CLEAR(store);
    else {
        Py_XSETREF(AT(store, Address), address);
        Py_XSETREF(AT(store, Mem), Py_NewRef(r));
    }
    return store;
}

/* A large array of memory that is fresh; takes over the reference to `r`, unless it fails.  It has no store as long
 * as nobody asks for it. */
static PyObject *
large_handle(PyObject *r)
{
    PyObject *shape = shape_of(r), *x = shape == NULL ? NULL : new_large(Wrapped, NULL, shape, Py_None, Py_False, r, Py_None);
    Py_XDECREF(shape);
    if (x != NULL)
        Py_DECREF(r);
    PyErr_Clear(); /* of memory: the slow way says it again */
    return x;
}

/* A large array of what NumPy has just made and nobody else has, with `refs` references known: it need not be known by its
 * memory, on one process.  NULL, without having taken the reference, if it is not so. */
static PyObject *
large_if_fresh(PyObject *r, Py_ssize_t refs)
{
    return Py_REFCNT(r) == refs && is_fresh(r) && is_one_rank() ? large_handle(r) : NULL;
}

/* The store of a large array, made if there was none; borrowed.  NULL with
 * an exception. */
static PyObject *
store_of(PyObject *x)
{
    PyObject *store;
    if (AT(x, Store) != NULL)
        return AT(x, Store);
    if (!is_large(x) || AT(x, View) == NULL || Py_TYPE(AT(x, View)) != PlainClass) {
        PyErr_SetString(PyExc_AttributeError, "'ndarray' object has no attribute '_store'");
        return NULL;
    }
    if (viewed_store(x) != NULL) {
        store = PyObject_CallOneArg(Locate, x);
        Py_XDECREF(store);
        return store == NULL ? NULL : AT(x, Store);
    }
    store = store_with(AT(x, View), AT(x, Shape));
    if (store == NULL || AT(x, Store) != NULL) { /* another thread has made it meanwhile */
        Py_XDECREF(store);
        return AT(x, Store);
    }
    AT(x, Store) = store;
    return store;
}

/* Is this of a dtype of which no wrapped array is small: dates, times and texts? */
static inline int
never_small(PyObject *array)
{
    return !known_dtype(array) && strchr("MmSU", ((Array *)array)->dtype->kind) != NULL;
}

/* A tuple of new arrays, wrapped, or NULL without an exception. */
static PyObject *
wrap_tuple(PyObject *r)
{
    Py_ssize_t n = PyTuple_GET_SIZE(r);
    PyObject *items = PyTuple_New(n);
    for (Py_ssize_t k = 0; items != NULL && k < n; k++) {
        PyObject *one = PyTuple_GET_ITEM(r, k), *x = NULL;
        if (Py_TYPE(one) == PlainClass && base_of(one) == NULL && !never_small(one)) {
            Py_INCREF(one);
            x = elements_of(one) < SmallLimit ? small_handle(one) : large_if_fresh(one, 2);
            if (x == NULL && elements_of(one) >= SmallLimit)
                Py_DECREF(one);
        }
        set_or_clear(&items, k, x);
    }
    PyErr_Clear(); /* of memory: the slow way says it again */
    return items;
}

static PyObject *adopt_array(PyObject *array);

/* NumPy's result, with `refs` references known, wrapped; takes over one. */
static PyObject *
wrap_held_result(PyObject *r, Py_ssize_t refs)
{
    PyObject *other;
    if (r == NULL)
        return NULL;
    if (Py_TYPE(r) == PlainClass) {
        if (never_small(r)) {
            other = adopt_array(r);
            if (other == NULL)
                other = PyObject_CallOneArg(Wrap, r);
            Py_DECREF(r);
            return other;
        }
        if (elements_of(r) < SmallLimit)
            return small_handle(r);
        if ((other = large_if_fresh(r, refs)) != NULL)
            return other;
    }
    else if (!PyTuple_CheckExact(r))
        return r;
    else if ((other = wrap_tuple(r)) != NULL) {
        Py_DECREF(r);
        return other;
    }
    other = PyObject_CallOneArg(Wrap, r);
    Py_DECREF(r);
    return other;
}

/* `wrap_held_result` of a result with one reference. */
static PyObject *
wrap_result(PyObject *r)
{
    return wrap_held_result(r, 1);
}
