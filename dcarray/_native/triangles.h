/* Triangles of plain arrays.  NumPy makes a mask of every element and chooses by it; a row of a triangle is what is copied
 * and what is cleared. */

typedef struct {
    PyObject_HEAD
    vectorcallfunc call;
    PyObject *numpy; /* what does it for arrays of all other kinds */
    int lower;
} Triangle;

/* Which triangle of an array in C's order: a new array, or NULL with an exception. */
static PyObject *
triangle(Array *a, Py_ssize_t k, int lower)
{
    PyObject *copy = NewArray(PlainClass, Py_NewRef((PyObject *)a->dtype), a->ndim, a->shape, NULL, NULL, 0, NULL);
    Py_ssize_t width = Known[a->dtype->type & 127].width, columns = a->shape[a->ndim - 1], rows = a->shape[a->ndim - 2];
    Py_ssize_t all = elements_of((PyObject *)a), lines = columns ? all / columns : 0;
    char *from = a->data, *to;
    if (copy == NULL)
        return NULL;
    to = ((Array *)copy)->data;
    for (Py_ssize_t line = 0; line < lines; line++, from += columns * width, to += columns * width) {
        Py_ssize_t row = line % rows, left = row + k + lower; /* columns on the left side */
        left = left < 0 ? 0 : left > columns ? columns : left;
        if (lower) {
            memcpy(to, from, left * width);
            memset(to + left * width, 0, (columns - left) * width);
        }
        else {
            memset(to, 0, left * width);
            memcpy(to + left * width, from + left * width, (columns - left) * width);
        }
    }
    return copy;
}

static PyObject *
call_triangle(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *names)
{
    Triangle *t = (Triangle *)self;
    Py_ssize_t n = PyVectorcall_NARGS(nargsf), k = 0;
    Array *a = n > 0 && Py_TYPE(args[0]) == PlainClass ? (Array *)args[0] : NULL;
    if (a == NULL || NewArray == NULL || n > 2 || names != NULL || a->ndim < 2 || !(a->flags & IN_C_ORDER) ||
        !is_known(a->dtype) || (n == 2 && !PyLong_CheckExact(args[1])))
        return PyObject_Vectorcall(t->numpy, args, nargsf, names);
    if (n == 2) {
        k = PyLong_AsSsize_t(args[1]);
        if (k < -PY_SSIZE_T_MAX / 2 || k > PY_SSIZE_T_MAX / 2) {
            PyErr_Clear();
            return PyObject_Vectorcall(t->numpy, args, nargsf, names);
        }
    }
    return triangle(a, k, t->lower);
}

static void
free_triangle(PyObject *self)
{
    Py_DECREF(((Triangle *)self)->numpy);
    PyObject_Free(self);
}

static PyTypeObject TriangleType = {PyVarObject_HEAD_INIT(NULL, 0).tp_name = "dcarray._native.extension.Triangle",
                                    .tp_basicsize = sizeof(Triangle),
                                    .tp_dealloc = free_triangle,
                                    .tp_vectorcall_offset = offsetof(Triangle, call),
                                    .tp_call = PyVectorcall_Call,
                                    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL |
                                                Py_TPFLAGS_DISALLOW_INSTANTIATION};

/* make_triangles(function, lower): a callable that does NumPy's `tril` (or `triu`) row by row on plain arrays. */
static PyObject *
make_triangles(PyObject *module, PyObject *args)
{
    PyObject *numpy;
    int lower;
    Triangle *route;
    if (!PyArg_ParseTuple(args, "Op", &numpy, &lower) || PyType_Ready(&TriangleType) < 0 ||
        (route = PyObject_New(Triangle, &TriangleType)) == NULL)
        return NULL;
    route->call = call_triangle;
    route->numpy = Py_NewRef(numpy);
    route->lower = lower;
    return (PyObject *)route;
}
