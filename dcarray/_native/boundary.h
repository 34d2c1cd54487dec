/* The boundary of accelerated functions (dcarray/jit/decorator.py): plain arrays for results, and fingerprints of the
 * dictionaries of global names. */

/* Has a store weak references other than the one by which its memory is known? */
static int
has_other_references(PyObject *store)
{
    PyObject *seen = AT(store, ((PyTypeObject *)Stores)->tp_weaklistoffset), *mem = AT(store, Mem), *key, *known;
    if (seen == NULL)
        return 0;
    if (Families == NULL || ((PyWeakReference *)seen)->wr_next != NULL || base_of(mem) != NULL ||
        (key = PyLong_FromVoidPtr(mem)) == NULL)
        return 1;
    known = PyDict_GetItemWithError(Families, key);
    Py_DECREF(key);
    PyErr_Clear();
    return known != seen;
}

/* The plain array of a wrapped one that is small, or to which and to whose memory nothing else refers; it may decline. */
static PyObject *
sole_array(PyObject *x)
{
    PyObject *store, *view, *mem;
    if (Py_TYPE(x) != Wrapped)
        return NULL;
    if (AT(x, Small) != NULL && Py_TYPE(AT(x, Small)) == PlainClass)
        return Py_NewRef(AT(x, Small));
    if (!is_large(x) || Py_REFCNT(x) != 1 || AT(x, Wrapped->tp_weaklistoffset) != NULL || AT(x, Readonly) != Py_False)
        return NULL;
    store = AT(x, Store);
    view = AT(x, View) == Py_None ? NULL : AT(x, View);
    if (store == NULL) /* NumPy made it at once */
        return viewed_store(x) == NULL && view != NULL && Py_TYPE(view) == PlainClass && Py_REFCNT(view) == 1
                   ? Py_NewRef(view)
                   : NULL;
    mem = AT(store, Mem);
    if (Py_REFCNT(store) != 1 || AT(x, Index) != Py_None || (AT(store, Head) != NULL && AT(store, Head) != Py_None) ||
        !has_run(AT(store, Used)) || !has_run(AT(store, Dirty)) || mem == NULL || Py_TYPE(mem) != PlainClass ||
        !(((Array *)mem)->flags & WRITEABLE) || (view != NULL && view != mem) || Py_REFCNT(mem) != 1 + (view == mem) ||
        has_other_references(store))
        return NULL;
    return Py_NewRef(mem);
}

/* unwrap_result(box): the value that only this list refers to, with plain arrays for the wrapped ones that nobody else has;
 * also in a tuple. */
static PyObject *
unwrap_result(PyObject *module, PyObject *box)
{
    PyObject *x, *made, *plain;
    if (!PyList_CheckExact(box) || PyList_GET_SIZE(box) != 1) {
        PyErr_SetString(PyExc_TypeError, "unwrap_result() wants a list of one");
        return NULL;
    }
    x = PyList_GET_ITEM(box, 0);
    if (Wrapped != NULL && (plain = sole_array(x)) != NULL)
        return plain;
    if (Wrapped == NULL || !PyTuple_CheckExact(x) || Py_REFCNT(x) != 1)
        return Py_NewRef(x);
    made = PyTuple_New(PyTuple_GET_SIZE(x));
    for (Py_ssize_t k = 0; made != NULL && k < PyTuple_GET_SIZE(x); k++) {
        plain = sole_array(PyTuple_GET_ITEM(x, k));
        PyTuple_SET_ITEM(made, k, plain != NULL ? plain : Py_NewRef(PyTuple_GET_ITEM(x, k)));
    }
    return made;
}

/* dict_fingerprint(names): a number that differs, but for one chance in 2**64, where the objects of a dictionary are others. */
static PyObject *
dict_fingerprint(PyObject *module, PyObject *names)
{
    PyObject *key, *value;
    Py_ssize_t at = 0;
    uint64_t mixed = 0;
    if (!PyDict_Check(names)) {
        PyErr_SetString(PyExc_TypeError, "dict_fingerprint() wants a dictionary");
        return NULL;
    }
    while (PyDict_Next(names, &at, &key, &value)) {
        mixed = (mixed ^ (uint64_t)(uintptr_t)key) * 0x9E3779B97F4A7C15u;
        mixed = (mixed ^ mixed >> 29 ^ (uint64_t)(uintptr_t)value) * 0xBF58476D1CE4E5B9u;
        mixed ^= mixed >> 32;
    }
    return PyLong_FromUnsignedLongLong(mixed);
}
