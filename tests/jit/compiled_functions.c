/* Functions that take instances of numpy.ndarray alone, as those of Cython and f2py do. */
#define NPY_NO_DEPRECATED_API NPY_1_7_API_VERSION
#include <Python.h>
#include <numpy/arrayobject.h>

static PyObject *kept = NULL, *cached = NULL;

static int
is_doubles(PyObject *x)
{
    if (PyArray_Check(x) && PyArray_TYPE((PyArrayObject *)x) == NPY_DOUBLE && PyArray_ISCARRAY((PyArrayObject *)x))
        return 1;
    PyErr_Format(PyExc_TypeError, "expected numpy.ndarray of doubles, got %s", Py_TYPE(x)->tp_name);
    return 0;
}

static double
sum_of(PyObject *x)
{
    double sum = 0, *at = PyArray_DATA((PyArrayObject *)x);
    for (npy_intp k = 0; k < PyArray_SIZE((PyArrayObject *)x); k++)
        sum += at[k];
    return sum;
}

static PyObject *
total(PyObject *module, PyObject *x)
{
    return is_doubles(x) ? PyFloat_FromDouble(sum_of(x)) : NULL;
}

/* fill(x, value=0.0): x itself, with all elements set */
static PyObject *
fill(PyObject *module, PyObject *args, PyObject *named)
{
    static char *names[] = {"x", "value", NULL};
    PyObject *x;
    double value = 0;
    if (!PyArg_ParseTupleAndKeywords(args, named, "O|d", names, &x, &value) || !is_doubles(x))
        return NULL;
    for (npy_intp k = 0; k < PyArray_SIZE((PyArrayObject *)x); k++)
        ((double *)PyArray_DATA((PyArrayObject *)x))[k] = value;
    return Py_NewRef(x);
}

static PyObject *
keep(PyObject *module, PyObject *x)
{
    if (!is_doubles(x))
        return NULL;
    Py_XSETREF(kept, Py_NewRef(x));
    Py_RETURN_NONE;
}

static PyObject *
total_of_kept(PyObject *module, PyObject *unused)
{
    return PyFloat_FromDouble(sum_of(kept));
}

static PyObject *
add_to_kept(PyObject *module, PyObject *value)
{
    double *at = PyArray_DATA((PyArrayObject *)kept), more = PyFloat_AsDouble(value);
    for (npy_intp k = 0; k < PyArray_SIZE((PyArrayObject *)kept); k++)
        at[k] += more;
    Py_RETURN_NONE;
}

/* zeros(n): a new array and its number of elements */
static PyObject *
zeros(PyObject *module, PyObject *size)
{
    npy_intp n = PyLong_AsLong(size);
    return Py_BuildValue("Nn", PyArray_ZEROS(1, &n, NPY_DOUBLE, 0), n);
}

/* table(): always the same array */
static PyObject *
table(PyObject *module, PyObject *unused)
{
    npy_intp n = 30000;
    if (cached == NULL)
        cached = PyArray_ZEROS(1, &n, NPY_DOUBLE, 0);
    return Py_XNewRef(cached);
}

static PyObject *
total_of_table(PyObject *module, PyObject *unused)
{
    return PyFloat_FromDouble(sum_of(cached));
}

/* replace(list or dict): the first item, or "x", becomes a new array; what was there is returned */
static PyObject *
replace(PyObject *module, PyObject *values)
{
    npy_intp n = 3;
    PyObject *made = PyArray_ZEROS(1, &n, NPY_DOUBLE, 0), *old;
    if (PyDict_Check(values)) {
        old = Py_XNewRef(PyDict_GetItemString(values, "x"));
        PyDict_SetItemString(values, "x", made);
    }
    else {
        old = Py_NewRef(PyList_GetItem(values, 0));
        PyList_SetItem(values, 0, Py_NewRef(made));
    }
    Py_DECREF(made);
    return old;
}

/* Sums(x): keeps an array; its method plus(y) returns the sum of both arrays' elements */
typedef struct {
    PyObject head;
    PyObject *x;
} Sums;

static PyObject *
sums_new(PyTypeObject *kind, PyObject *args, PyObject *named)
{
    PyObject *x, *made;
    if (!PyArg_ParseTuple(args, "O", &x) || !is_doubles(x) || (made = kind->tp_alloc(kind, 0)) == NULL)
        return NULL;
    ((Sums *)made)->x = Py_NewRef(x);
    return made;
}

static void
sums_end(PyObject *self)
{
    Py_XDECREF(((Sums *)self)->x);
    Py_TYPE(self)->tp_free(self);
}

static PyObject *
plus(PyObject *self, PyObject *y)
{
    return is_doubles(y) ? PyFloat_FromDouble(sum_of(((Sums *)self)->x) + sum_of(y)) : NULL;
}

static PyMethodDef sums_methods[] = {{"plus", plus, METH_O, "The sum of both."}, {NULL}};
static PyTypeObject SumsType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "compiled_functions.Sums",
    .tp_basicsize = sizeof(Sums),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = sums_new,
    .tp_dealloc = sums_end,
    .tp_methods = sums_methods,
};
static PyTypeObject OpenSumsType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "compiled_functions.OpenSums",
    .tp_basicsize = sizeof(Sums),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .tp_new = sums_new,
    .tp_dealloc = sums_end,
    .tp_methods = sums_methods,
};
static PyTypeObject HiddenType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "compiled_functions.Hidden",
    .tp_basicsize = sizeof(Sums),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_dealloc = sums_end,
    .tp_methods = sums_methods,
};

/* hidden(x): an object of a class that has no name here */
static PyObject *
hidden(PyObject *module, PyObject *x)
{
    PyObject *made = is_doubles(x) ? HiddenType.tp_alloc(&HiddenType, 0) : NULL;
    if (made != NULL)
        ((Sums *)made)->x = Py_NewRef(x);
    return made;
}

static PyMethodDef functions[] = {
    {"hidden", hidden, METH_O, NULL},
    {"total", total, METH_O, "The sum of all elements."},
    {"fill", (PyCFunction)(void (*)(void))fill, METH_VARARGS | METH_KEYWORDS, NULL},
    {"keep", keep, METH_O, NULL},
    {"total_of_kept", total_of_kept, METH_NOARGS, NULL},
    {"add_to_kept", add_to_kept, METH_O, NULL},
    {"zeros", zeros, METH_O, NULL},
    {"table", table, METH_NOARGS, NULL},
    {"total_of_table", total_of_table, METH_NOARGS, NULL},
    {"replace", replace, METH_O, NULL},
    {NULL},
};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "compiled_functions", NULL, -1, functions};

PyMODINIT_FUNC
PyInit_compiled_functions(void)
{
    PyObject *module;
    import_array();
    if (PyType_Ready(&SumsType) < 0 || PyType_Ready(&OpenSumsType) < 0 || PyType_Ready(&HiddenType) < 0)
        return NULL;
    module = PyModule_Create(&definition);
    PyModule_AddObjectRef(module, "Sums", (PyObject *)&SumsType);
    PyModule_AddObjectRef(module, "OpenSums", (PyObject *)&OpenSumsType);
    return module;
}
