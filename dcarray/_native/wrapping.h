/* Plain arrays as wrapped ones, and names of NumPy's objects whose values are dcarray's in accelerated code. */

static PyObject *Families; /* a dict: weak references to stores by the identity of who owns their memory */
static PyObject *Forget;   /* a function: forget those that have gone; how many there may be then */
static Py_ssize_t Many;    /* that number */
static PyObject *Adopt;    /* a function of a plain array: the wrapped one, whatever it is */

/* Is memory known by its owner?  -1 if that is not to be found out here. */
static int
is_family_known(PyObject *own)
{
    PyObject *key, *seen, *store;
    int known;
    if (Families == NULL || simulated())
        return -1;
    if (PyDict_GET_SIZE(Families) >= Many) {
        PyObject *most = PyObject_CallNoArgs(Forget);
        Many = most == NULL ? -1 : PyLong_AsSsize_t(most);
        Py_XDECREF(most);
        if (Many < 0)
            return -1;
    }
    if ((key = PyLong_FromVoidPtr(own)) == NULL)
        return -1;
    seen = PyDict_GetItemWithError(Families, key);
    Py_DECREF(key);
    if (seen == NULL)
        return PyErr_Occurred() ? -1 : 0;
    known = PyWeakref_CheckRef(seen) ? referent(seen, &store) : -1;
    if (known > 0)
        Py_DECREF(store);
    return known;
}

/* Make it known. */
static int
register_family(PyObject *own, PyObject *store)
{
    PyObject *key = PyLong_FromVoidPtr(own), *seen = key == NULL ? NULL : PyWeakref_NewRef(store, NULL);
    int done = seen == NULL ? -1 : PyDict_SetItem(Families, key, seen);
    Py_XDECREF(key);
    Py_XDECREF(seen);
    return done;
}

/* A plain array that owns its memory, wrapped, as `adopt` of handle.py; NULL, without an exception, if it is not of the
 * usual kind. */
static PyObject *
adopt_array(PyObject *array)
{
    Array *a = (Array *)array;
    Py_ssize_t below = eager_below();
    PyObject *shape, *store, *x = NULL;
    int known = is_known(a->dtype), foreign = never_small(array);
    if (below < 0 || a->base != NULL || !(known || foreign))
        x = NULL;
    else if (known && elements_of(array) < below)
        return small_handle(Py_NewRef(array));
    else if ((a->flags & (IN_C_ORDER | ALIGNED | WRITEABLE | WARNS)) == (IN_C_ORDER | ALIGNED | WRITEABLE) &&
             is_family_known(array) == 0 && (shape = shape_of(array)) != NULL) {
        store = store_with(array, shape);
        if (store != NULL && foreign) /* which kernels do not know */
            Py_XSETREF(AT(store, Char), PyUnicode_New(0, 0));
        if (store != NULL && register_family(array, store) == 0 && (x = large_handle(Py_NewRef(array))) != NULL)
            AT(x, Store) = Py_NewRef(store);
        else if (store != NULL && !PyErr_Occurred())
            Py_DECREF(array); /* `large_handle` has not taken it */
        Py_XDECREF(store);
        Py_DECREF(shape);
    }
    PyErr_Clear(); /* of memory: the slow way says it again */
    return x;
}

/* wrap(value): a plain array as a wrapped one, as `wrap` of dcarray/api/array.py; any other object as it is. */
static PyObject *
wrap_value(PyObject *module, PyObject *value)
{
    PyObject *x;
    if (Py_TYPE(value) != PlainClass)
        return Py_NewRef(value);
    x = adopt_array(value);
    return x != NULL ? x : PyObject_CallOneArg(Adopt, value);
}

/* set_families(families, forget, adopt): how arrays are passed; False if nothing is installed. */
static PyObject *
set_families(PyObject *module, PyObject *args)
{
    PyObject *families, *forget, *adopt;
    if (!PyArg_ParseTuple(args, "O!OO", &PyDict_Type, &families, &forget, &adopt))
        return NULL;
    if (Wrapped == NULL || Families != NULL)
        Py_RETURN_FALSE;
    Families = Py_NewRef(families);
    Forget = Py_NewRef(forget);
    Adopt = Py_NewRef(adopt);
    Py_RETURN_TRUE;
}

/* ---- accelerated code -------------------------------------------------------------------------- */
/* BoundName(names, name, substitute, key, inside, everywhere), as in dcarray/jit/loops/entry/bound_names.py. */
typedef struct {
    PyObject_HEAD
    PyObject *names, *name, *substitute, *key, *inside, *everywhere;
    PyObject *replaced; /* the last value that was replaced, and what replaces it */
} BoundName;

static int
bound_init(PyObject *self, PyObject *args, PyObject *keywords)
{
    BoundName *b = (BoundName *)self;
    Py_INCREF(args); /* for good, with all that it has */
    return PyArg_ParseTuple(args, "O!UOOOO!", &PyDict_Type, &b->names, &b->name, &b->substitute, &b->key, &b->inside,
                            &PyDict_Type, &b->everywhere) - 1;
}

static int
is_among(PyObject *keys, PyObject *key)
{
    int known = 0;
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(keys); k++)
        known |= PyTuple_GET_ITEM(keys, k) == key;
    return known;
}

static PyObject *
bound_value(PyObject *self)
{
    BoundName *b = (BoundName *)self;
    PyObject *value = PyDict_GetItemWithError(b->names, b->name), *keys, *object;
    int is_inside;
    if (value == NULL && !PyErr_Occurred() && (value = PyDict_GetItemWithError(PyEval_GetBuiltins(), b->name)) == NULL) {
        object = PyObject_CallFunction(PyExc_NameError, "N", PyUnicode_FromFormat("name '%U' is not defined", b->name));
        if (object != NULL && PyObject_SetAttrString(object, "name", b->name) == 0)
            PyErr_SetObject(PyExc_NameError, object);
        Py_XDECREF(object);
    }
    if (value == NULL || PyContextVar_Get(b->inside, NULL, &keys) < 0)
        return NULL;
    is_inside = is_among(keys, b->key) || is_among(PyDict_GetItemWithError(b->everywhere, ModulesName), b->key);
    Py_DECREF(keys);
    if (is_inside && (b->replaced == NULL || PyTuple_GET_ITEM(b->replaced, 0) != value)) {
        keys = PyTuple_Pack(1, value);
        object = keys == NULL ? NULL : PyObject_CallObject(b->substitute, keys);
        Py_XSETREF(keys, object == NULL ? NULL : PyTuple_Pack(2, PyTuple_GET_ITEM(keys, 0), object));
        Py_XDECREF(object);
        if (keys == NULL)
            return NULL;
        Py_XSETREF(b->replaced, keys);
    }
    return Py_NewRef(is_inside ? PyTuple_GET_ITEM(b->replaced, 1) : value);
}

static PyNumberMethods bound_numbers = {.nb_invert = bound_value};
static PyMemberDef bound_members[] = {
    {"names", T_OBJECT, offsetof(BoundName, names), READONLY, NULL}, {"name", T_OBJECT, offsetof(BoundName, name), READONLY, NULL}, {0}};
static PyTypeObject BoundNameType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "dcarray._native.extension.BoundName",
    .tp_basicsize = sizeof(BoundName),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = PyType_GenericNew,
    .tp_init = bound_init,
    .tp_as_number = &bound_numbers,
    .tp_members = bound_members,
};

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
