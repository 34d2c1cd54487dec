/* Operands as NumPy can take them at once at a place of the program. */

/* As `small_array`, or the view of a large array on which nothing is pending, if that is little or NumPy works on such
 * arrays at this place.  What NumPy makes of it must not be a view of it. */
static inline PyObject *
eager_array(PyObject *x, Place *place)
{
    PyObject *a = small_array(x);
    if (a == NULL && Py_TYPE(x) == Wrapped) {
        a = AT(x, SmallView);
        if (a == NULL || Py_TYPE(a) != PlainClass)
            return eager_view(x, place);
        if (!is_idle(x))
            return NULL;
    }
    return a;
}

/* A plain array that is little, or NumPy works on such arrays at this place: it is nobody's to record then. */
static PyObject *
eager_plain(PyObject *x, Place *place)
{
    int eager = elements_of(x) < SmallLimit ? 1 : permits(place, elements_of(x));
    if (eager < 0)
        PyErr_Clear();
    return eager > 0 ? x : NULL;
}

/* Is this one of the scalars of which NumPy takes the instances as they are? */
static inline int
is_numpy_scalar(PyObject *x)
{
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(Scalars); k++)
        if (Py_TYPE(x) == (PyTypeObject *)PyTuple_GET_ITEM(Scalars, k))
            return 1;
    return 0;
}

/* The operand as NumPy can take it at once, or NULL. */
static inline PyObject *
numpy_operand(PyObject *x, Place *place)
{
    PyTypeObject *t = Py_TYPE(x);
    if (t == Wrapped)
        return eager_array(x, place);
    if (t == PlainClass)
        return eager_plain(x, place);
    return is_numpy_scalar(x) ? x : NULL;
}

/* Is the result of two operands at hand, or their matrix product, so large that it is better recorded? */
static inline int
is_worth_recording(PyObject *p, PyObject *q, int multiplied, Place *place)
{
    Py_ssize_t n = Py_TYPE(p) == PlainClass && Py_TYPE(q) == PlainClass ? broadcast_size(p, q, 2 * SmallLimit, multiplied) : 0;
    int eager = n ? permits(place, n) : 1;
    if (eager < 0)
        PyErr_Clear();
    return eager <= 0;
}
