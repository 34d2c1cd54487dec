/* The guard keys of sites that have a plan (dcarray/jit/loops/entry/guard_checks.py). */

enum { DEEP = 4 }; /* tuples in tuples that are looked into */

/* The object that owns the memory of an array, as `owner` of dcarray/core/store.py; borrowed; it may decline. */
static PyObject *
owner_of(PyObject *x)
{
    static PyObject *name;
    if (name == NULL && (name = PyUnicode_InternFromString("base")) == NULL)
        PyErr_Clear();
    while (name != NULL) {
        PyObject *base = NULL;
        if (PyObject_TypeCheck(x, PlainClass))
            base = base_of(x);
        else if (PyMemoryView_Check(x))
            base = PyMemoryView_GET_BUFFER(x)->obj;
        else if (Py_IS_TYPE(x, &ExportType))
            base = ((Export *)x)->array;
        else if (Py_TYPE(x)->tp_dictoffset != 0 || Py_TYPE(x)->tp_getattro != PyObject_GenericGetAttr ||
                 PyObject_HasAttr((PyObject *)Py_TYPE(x), name))
            return NULL;
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
    int idle;
    if (Families == NULL) /* there are no wrapped arrays */
        return 1;
    own = base_of(array) == NULL ? array : owner_of(array);
    if (own == NULL || (key = PyLong_FromVoidPtr(own)) == NULL)
        return 0;
    seen = PyDict_GetItemWithError(Families, key);
    Py_DECREF(key);
    if (seen == NULL)
        return !PyErr_Occurred();
    idle = PyWeakref_CheckRef(seen) ? referent(seen, &store) : -1;
    if (idle <= 0)
        return idle == 0; /* it is gone */
    idle = Py_TYPE(store) == (PyTypeObject *)Stores;
    head = idle ? family_of(store) : NULL;
    idle = idle && has_run(AT(head, Used)) && has_run(AT(head, Dirty)) && (AT(head, Remote) == NULL || AT(head, Remote) == Py_None);
    Py_DECREF(store);
    return idle;
}

enum { MOST_ARRAYS = 32 };

typedef struct {
    PyObject *array;
    char *low, *high; /* the first byte that it may touch, and the one after the last */
    int written;
} Span;

/* The plain array of a value if it is what a check says, and nothing is pending on its memory; else NULL.  A borrowed
 * reference. */
static PyObject *
checked_array(PyObject *x, int is_wrapped, PyObject *dtype, int written, PyObject *geometry)
{
    PyObject *array = x;
    Array *a;
    size_t half;
    if (Py_TYPE(x) != (is_wrapped ? Wrapped : PlainClass))
        return NULL;
    if (is_wrapped && (array = small_array(x)) == NULL &&
        (!is_large(x) || AT(x, Store) == NULL || !is_idle(x) || (array = AT(x, View)) == NULL || Py_TYPE(array) != PlainClass))
        return NULL;
    a = (Array *)array;
    half = (size_t)a->ndim * sizeof(Py_ssize_t);
    if ((PyObject *)a->dtype != dtype || (size_t)PyBytes_GET_SIZE(geometry) != 2 * half || !(a->flags & ALIGNED) ||
        ((a->flags & WRITEABLE) && !(a->flags & WARNS)) != written ||
        (half && (memcmp(a->shape, PyBytes_AS_STRING(geometry), half) ||
                  memcmp(a->strides, PyBytes_AS_STRING(geometry) + half, half))))
        return NULL;
    return is_wrapped || is_idle_memory(x) ? array : NULL;
}

/* A value if it is a plain array in C order of a dtype and a number of axes, and nothing is pending on its memory; else NULL.  A
 * borrowed reference. */
static PyObject *
array_in_c_order(PyObject *x, PyObject *dtype, int written, long axes)
{
    Array *a = (Array *)x;
    if (Py_TYPE(x) != PlainClass || (PyObject *)a->dtype != dtype || a->ndim != axes ||
        (a->flags & (IN_C_ORDER | ALIGNED)) != (IN_C_ORDER | ALIGNED) ||
        ((a->flags & WRITEABLE) && !(a->flags & WARNS)) != written)
        return NULL;
    return is_idle_memory(x) ? x : NULL;
}

/* Is a value what a check says?  -1 with an exception; for an array also where it lies. */
static int
meets_check(PyObject *x, PyObject *check, Span *spans, int *arrays, int deep)
{
    Py_ssize_t size = PyTuple_CheckExact(check) ? PyTuple_GET_SIZE(check) : 0;
    long kind = size > 1 ? PyLong_AsLong(PyTuple_GET_ITEM(check, 0)) : -1;
    PyObject *what = size > 1 ? PyTuple_GET_ITEM(check, 1) : NULL, *a;
    int meets = 0;
    if ((kind == PLAIN_ARRAY || kind == WRAPPED_ARRAY) && size == 7 && PyBytes_CheckExact(PyTuple_GET_ITEM(check, 3)) &&
        !deep) {
        a = checked_array(x, kind == WRAPPED_ARRAY, what, PyTuple_GET_ITEM(check, 2) == Py_True, PyTuple_GET_ITEM(check, 3));
        if (a == NULL || *arrays == MOST_ARRAYS)
            return 0;
        spans[*arrays].array = x;
        spans[*arrays].low = ((Array *)a)->data + PyLong_AsSsize_t(PyTuple_GET_ITEM(check, 4));
        spans[*arrays].high = ((Array *)a)->data + PyLong_AsSsize_t(PyTuple_GET_ITEM(check, 5));
        spans[*arrays].written = PyTuple_GET_ITEM(check, 6) == Py_True;
        (*arrays)++;
        return PyErr_Occurred() ? -1 : 1;
    }
    if (kind == C_ORDER && size == 6 && !deep) {
        Py_ssize_t bytes = PyLong_AsSsize_t(PyTuple_GET_ITEM(check, 4)); /* of an element */
        a = array_in_c_order(x, what, PyTuple_GET_ITEM(check, 2) == Py_True, PyLong_AsLong(PyTuple_GET_ITEM(check, 3)));
        if (a == NULL || *arrays == MOST_ARRAYS)
            return PyErr_Occurred() ? -1 : 0;
        for (int axis = 0; axis < ((Array *)a)->ndim; axis++)
            bytes *= ((Array *)a)->shape[axis];
        spans[*arrays].array = x;
        spans[*arrays].low = ((Array *)a)->data;
        spans[*arrays].high = ((Array *)a)->data + bytes;
        spans[*arrays].written = PyTuple_GET_ITEM(check, 5) == Py_True;
        (*arrays)++;
        return PyErr_Occurred() ? -1 : 1;
    }
    switch (kind) {
    case IDENTITY:
        return x == what;
    case OF_TYPE:
        if (PyFloat_CheckExact(x) && isnan(PyFloat_AS_DOUBLE(x)))
            return 0; /* it has no guard */
        return (PyObject *)Py_TYPE(x) == what;
    case EQUAL_INT:
        return PyLong_CheckExact(x) ? x == what ? 1 : PyObject_RichCompareBool(x, what, Py_EQ) : 0;
    case FUNCTION:
        if (size == 3 && x == PyTuple_GET_ITEM(check, 2)) {
            PyObject *holds = PyObject_CallNoArgs(what);
            meets = holds == NULL ? -1 : holds == Py_True;
            Py_XDECREF(holds);
        }
        return meets;
    case TUPLE:
        if (!PyTuple_CheckExact(x) || !PyTuple_CheckExact(what) || PyTuple_GET_SIZE(x) != PyTuple_GET_SIZE(what) ||
            deep == DEEP)
            return 0;
        meets = 1;
        for (Py_ssize_t k = 0; meets > 0 && k < PyTuple_GET_SIZE(x); k++)
            meets = meets_check(PyTuple_GET_ITEM(x, k), PyTuple_GET_ITEM(what, k), spans, arrays, deep + 1);
        return meets;
    }
    return PyErr_Occurred() ? -1 : 0;
}

/* Do arrays that are one object share memory as the checks say, and no others where one is written? */
static int
are_apart(const Span *spans, int arrays)
{
    for (int j = 1; j < arrays; j++)
        for (int k = 0; k < j; k++)
            if (spans[j].array == spans[k].array ||
                ((spans[j].written || spans[k].written) && spans[j].low < spans[k].high && spans[k].low < spans[j].high))
                return 0;
    return 1;
}

/* checks_hold(checks, values): for each value the address of its first element, if it is an array, else 0; None if they are not
 * known to be what the checks say, with nothing pending on them, and apart where they are written. */
static PyObject *
checks_hold(PyObject *module, PyObject *const *given, Py_ssize_t count)
{
    Span spans[MOST_ARRAYS];
    int arrays = 0, before, meets = 1;
    PyObject *checks, *values, *addresses;
    if (count != 2 || !PyTuple_CheckExact(given[0]) || !PyTuple_CheckExact(given[1])) {
        PyErr_SetString(PyExc_TypeError, "checks_hold() wants two tuples");
        return NULL;
    }
    checks = given[0];
    values = given[1];
    if (PlainClass == NULL || (Wrapped != NULL && (Families == NULL || simulated())) ||
        PyTuple_GET_SIZE(checks) != PyTuple_GET_SIZE(values))
        Py_RETURN_NONE;
    addresses = PyTuple_New(PyTuple_GET_SIZE(values));
    for (Py_ssize_t k = 0; addresses != NULL && meets > 0 && k < PyTuple_GET_SIZE(values); k++) {
        PyObject *x = PyTuple_GET_ITEM(values, k), *address;
        before = arrays;
        meets = meets_check(x, PyTuple_GET_ITEM(checks, k), spans, &arrays, 0);
        if (meets <= 0)
            break;
        if (arrays == before)
            address = PyLong_FromLong(0);
        else {
            PyObject *a = Py_TYPE(x) == PlainClass ? x : small_array(x);
            address = PyLong_FromVoidPtr(((Array *)(a != NULL ? a : AT(x, View)))->data);
        }
        set_or_clear(&addresses, k, address);
    }
    if (addresses != NULL && meets > 0 && are_apart(spans, arrays))
        return addresses;
    Py_XDECREF(addresses);
    if (meets < 0 || PyErr_Occurred())
        return NULL;
    Py_RETURN_NONE;
}
