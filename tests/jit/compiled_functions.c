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

static PyMethodDef functions[] = {
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
    import_array();
    return PyModule_Create(&definition);
}
