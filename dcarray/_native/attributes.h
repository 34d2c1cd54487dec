/* Attributes of arrays, as in dcarray/api/attributes.py. */

/* An attribute of NumPy's arrays, and the property in Python. */
typedef struct {
    PyObject *key, *slow;
    PyGetSetDef *numpy; /* how NumPy's arrays give it */
} Attribute;

/* As `PyObject_GetAttr`, of a plain array. */
static inline PyObject *
attribute_of(PyObject *a, Attribute *attribute)
{
    return attribute->numpy->get(a, attribute->numpy->closure);
}

static PyObject *
slow_attribute(PyObject *x, Attribute *attribute)
{
    return PyObject_CallMethod(attribute->slow, "__get__", "O", x);
}

static int
set_attribute(PyObject *x, PyObject *value, void *attribute)
{
    PyObject *slow = ((Attribute *)attribute)->slow, *done;
    done = value == NULL ? PyObject_CallMethod(slow, "__delete__", "O", x)
                         : PyObject_CallMethod(slow, "__set__", "OO", x, value);
    Py_XDECREF(done);
    return done == NULL ? -1 : 0;
}

/* The elements of a large array; -1 with an exception. */
static Py_ssize_t
size_of(PyObject *x)
{
    Py_ssize_t n;
    if (AT(x, View) != NULL && Py_TYPE(AT(x, View)) == PlainClass)
        return elements_of(AT(x, View));
    n = elements_in(AT(x, Shape));
    return PyErr_Occurred() ? -1 : n;
}

static inline PyObject *
number_or_null(Py_ssize_t n)
{
    return n < 0 ? NULL : PyLong_FromSsize_t(n);
}

/* So many bytes as elements of this dtype take. */
static PyObject *
width_of(PyObject *x, PyObject *dtype, Py_ssize_t elements, Attribute *attribute)
{
    if (elements < 0)
        return NULL;
    if (!is_known((Descr *)dtype))
        return slow_attribute(x, attribute);
    return PyLong_FromSsize_t(elements * Known[((Descr *)dtype)->type & 127].width);
}

/* What is `small_value` of a small array, which is `a`, and `large_value` of a large one. */
#define ATTRIBUTE(name, small_value, large_value)                                                    \
    static Attribute attribute_##name;                                                               \
    static PyObject *fast_##name(PyObject *x, void *closure)                                         \
    {                                                                                                \
        PyObject *a = small_array(x);                                                                      \
        if (a != NULL)                                                                               \
            return (small_value);                                                                    \
        return is_large(x) ? (large_value) : slow_attribute(x, &attribute_##name);                   \
    }

#define DTYPE(a) ((PyObject *)((Array *)(a))->dtype)
#define LARGE_DTYPE(x) (AT(x, Store) == NULL ? DTYPE(AT(x, View)) : AT(AT(x, Store), Dtype))
ATTRIBUTE(shape, attribute_of(a, &attribute_shape), Py_NewRef(AT(x, Shape)))
ATTRIBUTE(ndim, PyLong_FromLong(((Array *)a)->ndim), PyLong_FromSsize_t(PyTuple_GET_SIZE(AT(x, Shape))))
ATTRIBUTE(size, PyLong_FromSsize_t(elements_of(a)), number_or_null(size_of(x)))
ATTRIBUTE(dtype, Py_NewRef(DTYPE(a)), Py_NewRef(LARGE_DTYPE(x)))
ATTRIBUTE(nbytes, width_of(x, DTYPE(a), elements_of(a), &attribute_nbytes),
          width_of(x, LARGE_DTYPE(x), size_of(x), &attribute_nbytes))
ATTRIBUTE(itemsize, width_of(x, DTYPE(a), 1, &attribute_itemsize),
          width_of(x, LARGE_DTYPE(x), 1, &attribute_itemsize))

/* An attribute of the plain view of a large array of complex numbers, on which nothing is pending, that is a view of
 * it; NULL, without an exception, of any other. */
static PyObject *
part_viewed(PyObject *x, Attribute *attribute)
{
    PyObject *view = viewable(x), *part, *y;
    if (view == NULL || ((Array *)view)->dtype->kind != 'c')
        return NULL;
    part = attribute_of(view, attribute);
    y = part == NULL ? NULL : view_handle(x, part);
    Py_XDECREF(part);
    return y;
}

/* Parts of a small array, views of it (or the array itself) if they are small arrays too. */
#define PART(name)                                                                                   \
    static Attribute attribute_##name;                                                               \
    static PyObject *fast_##name(PyObject *x, void *closure)                                         \
    {                                                                                                \
        PyObject *a = small_array(x), *r;                                                                  \
        if (a == NULL || !usual_dtype(a) || elements_of(a) >= SmallLimit) {                               \
            r = a == NULL ? part_viewed(x, &attribute_##name) : NULL;                               \
            return r != NULL || PyErr_Occurred() ? r : slow_attribute(x, &attribute_##name);         \
        }                                                                                            \
        r = attribute_of(a, &attribute_##name);                                                       \
        if (r != a)                                                                                  \
            return r == NULL ? NULL : small_handle(r);                                                     \
        Py_DECREF(r);                                                                                \
        return Py_NewRef(x);                                                                         \
    }

PART(T)
PART(real)
PART(imag)

/* As `fast_T`; of a large array with a view of its memory, which is turned: the window waits until it is needed,
 * as in handle.py. */
static PyObject *
fast_T_of_any(PyObject *x, void *closure)
{
    PyObject *view, *y;
    if (!is_large(x) || AT(x, View) == NULL || Py_TYPE(AT(x, View)) != PlainClass)
        return fast_T(x, closure);
    view = attribute_of(AT(x, View), &attribute_T);
    if (view == NULL)
        return NULL;
    y = AT(x, Index) == NULL && is_idle(x) && is_compiled(x) ? view_handle(x, view) : part_handle(x, Axes, view);
    if (y != NULL && AT(y, Store) != NULL && ((Array *)view)->ndim > 1)
        Py_XSETREF(AT(AT(x, Store), Permuted), Py_NewRef(Py_True));
    Py_DECREF(view);
    return y;
}

static lenfunc slow_length;
static Py_ssize_t
fast_length(PyObject *x)
{
    PyObject *a = small_array(x);
    if (a != NULL && ((Array *)a)->ndim > 0)
        return ((Array *)a)->shape[0];
    if (is_large(x) && PyTuple_GET_SIZE(AT(x, Shape)) > 0)
        return PyLong_AsSsize_t(PyTuple_GET_ITEM(AT(x, Shape), 0));
    return slow_length(x);
}

#define DEFINITION(name)                                                                             \
    {#name, fast_##name, set_attribute, "See `numpy.ndarray." #name "`.", &attribute_##name},
static PyGetSetDef attributes[] = {
    DEFINITION(shape) DEFINITION(ndim) DEFINITION(size) DEFINITION(dtype) DEFINITION(nbytes)
    DEFINITION(itemsize) DEFINITION(real) DEFINITION(imag)
    {"T", fast_T_of_any, set_attribute, "See `numpy.ndarray.T`.", &attribute_T}, {NULL}};

/* Put them into the class. */
static int
install_attributes(void)
{
    for (PyGetSetDef *one = attributes; one->name != NULL; one++) {
        Attribute *attribute = one->closure;
        PyObject *descriptor = PyDescr_NewGetSet(Wrapped, one);
        int done;
        attribute->numpy = NULL;
        for (PyGetSetDef *of = PlainClass->tp_getset; of != NULL && of->name != NULL; of++)
            if (strcmp(of->name, one->name) == 0)
                attribute->numpy = of;
        attribute->slow = PyObject_GetAttrString((PyObject *)Wrapped, one->name);
        attribute->key = PyUnicode_InternFromString(one->name);
        done = descriptor == NULL || attribute->numpy == NULL || attribute->slow == NULL || attribute->key == NULL ||
               PyObject_SetAttr((PyObject *)Wrapped, attribute->key, descriptor) < 0;
        Py_XDECREF(descriptor);
        if (done)
            return -1;
    }
    slow_length = Wrapped->tp_as_mapping->mp_length;
    Wrapped->tp_as_mapping->mp_length = Wrapped->tp_as_sequence->sq_length = fast_length;
    return 0;
}
