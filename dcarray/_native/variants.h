/* The kind of a call of an accelerated function, and whether it may be left to NumPy (dcarray/jit/variants.py). */

enum { DEEP = 4 }; /* tuples in tuples that are looked into */

static inline void
mix(uint64_t *key, uint64_t with)
{
    *key = (*key ^ with) * 0x9E3779B97F4A7C15u;
    *key ^= *key >> 29;
}

/* A number as one of few: its leading three bits, and how many there are. */
static uint64_t
size_class(uint64_t n)
{
    int more = 0;
    while (n > 7) {
        n >>= 1;
        more++;
    }
    return n << 8 | more;
}

/* The object that owns the memory of an array, as `owner` of dcarray/core/store.py; borrowed; it may decline. */
static PyObject *
owner_of(PyObject *x)
{
    static PyObject *name;
    if (name == NULL && (name = PyUnicode_InternFromString("base")) == NULL)
        PyErr_Clear();
    while (name != NULL) {
        PyObject *base;
        if (PyObject_TypeCheck(x, PlainClass))
            base = base_of(x);
        else if (PyMemoryView_Check(x))
            base = PyMemoryView_GET_BUFFER(x)->obj;
        else if (Py_IS_TYPE(x, &ExportType))
            base = ((Export *)x)->array;
        else if (Py_TYPE(x)->tp_dictoffset != 0 || Py_TYPE(x)->tp_getattro != PyObject_GenericGetAttr ||
                 _PyType_Lookup(Py_TYPE(x), name) != NULL)
            return NULL;
        else
            base = NULL;
        if (base == NULL)
            return x;
        x = base;
    }
    return NULL;
}

/* Is nothing pending on the memory of a plain array, which wrapped arrays may share? */
static int
is_idle_memory(PyObject *array)
{
    PyObject *own, *key, *seen, *store, *head;
    if (Families == NULL) /* there are no wrapped arrays */
        return 1;
    own = base_of(array) == NULL ? array : owner_of(array);
    if (own == NULL || (key = PyLong_FromVoidPtr(own)) == NULL)
        return 0;
    seen = PyDict_GetItemWithError(Families, key);
    Py_DECREF(key);
    if (seen == NULL)
        return !PyErr_Occurred();
    store = PyWeakref_CheckRef(seen) ? PyWeakref_GetObject(seen) : NULL;
    if (store == NULL || store == Py_None)
        return store == Py_None;
    if (Py_TYPE(store) != (PyTypeObject *)Stores)
        return 0;
    head = family_of(store);
    return has_run(AT(head, Used)) && has_run(AT(head, Dirty)) && (AT(head, Remote) == NULL || AT(head, Remote) == Py_None);
}

/* Add what an argument is to the key of a call: 0 if it is nothing that the function as it is written is known to serve
 * as well, perhaps with an exception. */
static int
add_argument(uint64_t *key, PyObject *x, int deep)
{
    PyTypeObject *kind = Py_TYPE(x);
    mix(key, (uint64_t)(uintptr_t)kind);
    if (kind == PlainClass) {
        Array *a = (Array *)x;
        Descr *d = a->dtype;
        if (strchr("biufcMmSU", d->kind) == NULL || (a->flags & WARNS) || !is_idle_memory(x))
            return 0;
        mix(key, (uint64_t)(unsigned char)d->type << 16 | (uint64_t)a->ndim << 8 | (a->flags & IN_C_ORDER));
        for (int k = 0; k < a->ndim; k++)
            mix(key, size_class(a->shape[k]));
        return 1;
    }
    if (kind == &PyLong_Type) {
        int over;
        long long n = PyLong_AsLongLongAndOverflow(x, &over);
        mix(key, over ? (uint64_t)over : size_class(n < 0 ? -(uint64_t)n : (uint64_t)n) << 1 | (n < 0));
        return 1;
    }
    if (kind == &PyBool_Type || x == Py_None) {
        mix(key, (uint64_t)(uintptr_t)x);
        return 1;
    }
    if (kind == &PyUnicode_Type) {
        mix(key, (uint64_t)PyObject_Hash(x));
        return 1;
    }
    if (kind == &PyFunction_Type) {
        mix(key, (uint64_t)(uintptr_t)((PyFunctionObject *)x)->func_code);
        return 1;
    }
    if (kind == &PyTuple_Type && deep < DEEP) {
        for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(x); k++)
            if (!add_argument(key, PyTuple_GET_ITEM(x, k), deep + 1))
                return 0;
        mix(key, PyTuple_GET_SIZE(x));
        return 1;
    }
    return is_numpy_scalar(x);
}

/* call_signature(args, kwargs): a number that tells calls of an accelerated function apart by their arguments' types,
 * dtypes and, roughly, sizes; None if it may not be left to NumPy. */
static PyObject *
call_signature(PyObject *module, PyObject *const *given, Py_ssize_t count)
{
    uint64_t key = 1;
    PyObject *name, *value;
    Py_ssize_t at = 0, below;
    int found = 1;
    if (count != 2 || !PyTuple_CheckExact(given[0]) || !PyDict_CheckExact(given[1])) {
        PyErr_SetString(PyExc_TypeError, "call_signature() wants arguments: a tuple and a dictionary");
        return NULL;
    }
    below = Wrapped == NULL || Suspended || !MayView ? 0 : eager_below();
    if (below <= 0 || Strict || OnDevice || simulated())
        found = 0;
    mix(&key, (uint64_t)below);
    for (Py_ssize_t k = 0; found && k < PyTuple_GET_SIZE(given[0]); k++)
        found = add_argument(&key, PyTuple_GET_ITEM(given[0], k), 0);
    while (found && PyDict_Next(given[1], &at, &name, &value)) {
        mix(&key, (uint64_t)PyObject_Hash(name));
        found = add_argument(&key, value, 0);
    }
    if (PyErr_Occurred())
        PyErr_Clear(); /* the long way says it again */
    else if (found)
        return PyLong_FromUnsignedLongLong(key);
    Py_RETURN_NONE;
}

/* Is no wrapped array in what a function has given? */
static int
has_no_wrapped(PyObject *x, int deep)
{
    PyTypeObject *kind = Py_TYPE(x);
    if (kind == PlainClass)
        return ((Array *)x)->dtype->kind != 'O';
    if (kind == &PyTuple_Type && deep < DEEP) {
        for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(x); k++)
            if (!has_no_wrapped(PyTuple_GET_ITEM(x, k), deep + 1))
                return 0;
        return 1;
    }
    if (kind == &PyList_Type && deep < DEEP) {
        for (Py_ssize_t k = 0; k < PyList_GET_SIZE(x); k++) {
            PyObject *item = PyList_GET_ITEM(x, k);
            if (Py_TYPE(item) != &PyFloat_Type && Py_TYPE(item) != &PyLong_Type && !has_no_wrapped(item, deep + 1))
                return 0;
        }
        return 1;
    }
    if (x == Py_None || kind == &PyUnicode_Type)
        return 1;
    return is_numpy_scalar(x);
}

/* holds_no_wrapped(value): is no wrapped array in it, as far as that is soon found out? */
static PyObject *
holds_no_wrapped(PyObject *module, PyObject *value)
{
    return PyBool_FromLong(Wrapped != NULL && has_no_wrapped(value, 0));
}
