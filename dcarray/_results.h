/* NumPy's results as arrays of ours.  Included where what it uses is declared. */

/* A small array; takes over the reference to `a`. */
static PyObject *
handle(PyObject *a)
{
    PyObject *x = Ours->tp_alloc(Ours, 0);
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
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(Dtypes); k++)
        if (PyTuple_GET_ITEM(Dtypes, k) == (PyObject *)((Array *)array)->dtype)
            return 1;
    return 0;
}

/* Has NumPy made this array for us alone, as kernels want it? */
static int
fresh(PyObject *r)
{
    Array *a = (Array *)r;
    Py_ssize_t step;
    if (a->base != NULL || !known_dtype(r))
        return 0;
    step = a->ndim ? number_in((PyObject *)a->dtype, ItemSize) : 0;
    for (int k = a->ndim - 1; k >= 0; k--) {
        if (a->strides[k] != step)
            return 0;
        step *= a->shape[k];
    }
    return 1;
}

/* The store of memory that is fresh, as any other new one but for what is its own. */
static PyObject *
new_store(PyObject *r, PyObject *shape)
{
    PyTypeObject *type = (PyTypeObject *)Stores;
    PyObject *dtype = (PyObject *)((Array *)r)->dtype, *store = type->tp_alloc(type, 0);
    PyObject *size = PyLong_FromSsize_t(elements_of(r)), *address = PyLong_FromVoidPtr(((Array *)r)->data);
    PyObject *letter = PyObject_GetAttr(dtype, CharName);
    if (store == NULL || size == NULL || address == NULL || letter == NULL)
        Py_CLEAR(store);
    for (PyMemberDef *m = type->tp_members; store != NULL && m->name != NULL; m++)
        AT(store, m->offset) = Py_XNewRef(AT(Example, m->offset));
    if (store != NULL) {
        Py_XSETREF(AT(store, Geometry), Py_NewRef(shape));
        Py_XSETREF(AT(store, Dtype), Py_NewRef(dtype));
        Py_XSETREF(AT(store, Char), Py_NewRef(letter));
        Py_XSETREF(AT(store, Size), Py_NewRef(size));
        Py_XSETREF(AT(store, Address), Py_NewRef(address));
        Py_XSETREF(AT(store, Mem), Py_NewRef(r));
    }
    Py_XDECREF(size);
    Py_XDECREF(address);
    Py_XDECREF(letter);
    return store;
}

/* A large array of memory that is fresh; takes over the reference to `r`. */
static PyObject *
large(PyObject *r)
{
    PyObject *shape = PyObject_GetAttr(r, ShapeName), *store = shape == NULL ? NULL : new_store(r, shape);
    PyObject *x = store == NULL ? NULL : Ours->tp_alloc(Ours, 0);
    if (x != NULL) {
        AT(x, Small) = Py_NewRef(Py_None);
        AT(x, Store) = Py_NewRef(store);
        AT(x, Shape) = Py_NewRef(shape);
        AT(x, Index) = Py_NewRef(Py_None);
        AT(x, Readonly) = Py_NewRef(Py_False);
        AT(x, View) = Py_NewRef(r);
        AT(x, Little) = Py_NewRef(Py_None);
    }
    Py_XDECREF(shape);
    Py_XDECREF(store);
    Py_DECREF(r);
    return x;
}

/* A tuple of new small arrays, ours, or NULL without an exception. */
static PyObject *
ours_together(PyObject *r)
{
    Py_ssize_t n = PyTuple_GET_SIZE(r);
    PyObject *made = PyTuple_New(n);
    for (Py_ssize_t k = 0; made != NULL && k < n; k++) {
        PyObject *one = PyTuple_GET_ITEM(r, k), *x = NULL;
        if (Py_TYPE(one) == Plain && base_of(one) == NULL && elements_of(one) < Limit)
            x = handle(Py_NewRef(one));
        if (x == NULL)
            Py_CLEAR(made);
        else
            PyTuple_SET_ITEM(made, k, x);
    }
    PyErr_Clear(); /* of memory: the slow way says it again */
    return made;
}

/* NumPy's result as ours; takes over the reference. */
static PyObject *
ours(PyObject *r)
{
    PyObject *other;
    if (r == NULL)
        return NULL;
    if (Py_TYPE(r) == Plain) {
        if (elements_of(r) < Limit)
            return handle(r);
        if (here() != NULL && fresh(r)) {
            other = large(r);
            if (other != NULL)
                note_place(other);
            return other;
        }
    }
    else if (!PyTuple_CheckExact(r))
        return r;
    else if ((other = ours_together(r)) != NULL) {
        Py_DECREF(r);
        return other;
    }
    other = PyObject_CallOneArg(Wrap, r);
    Py_DECREF(r);
    return other;
}
