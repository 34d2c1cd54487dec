/* Operands as NumPy can take them at once. */

/* As `small_array`, or the view of a small part of a large array on which nothing is pending.  What NumPy makes of it must
 * not be a view of it. */
static inline PyObject *
eager_array(PyObject *x)
{
    PyObject *a = small_array(x);
    if (a == NULL && Py_TYPE(x) == Wrapped) {
        a = AT(x, SmallView);
        if (a == NULL || Py_TYPE(a) != PlainClass)
            return NULL;
        if (!is_idle(x))
            return NULL;
    }
    return a;
}

/* A plain array that is small: it is nobody's to record then. */
static inline PyObject *
eager_plain(PyObject *x)
{
    return elements_of(x) < SmallLimit ? x : NULL;
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
numpy_operand(PyObject *x)
{
    PyTypeObject *t = Py_TYPE(x);
    if (t == Wrapped)
        return eager_array(x);
    if (t == PlainClass)
        return eager_plain(x);
    return is_numpy_scalar(x) ? x : NULL;
}

/* Is the result of two operands at hand, or their matrix product, so large that it is better recorded? */
static inline int
is_worth_recording(PyObject *p, PyObject *q, int multiplied)
{
    return Py_TYPE(p) == PlainClass && Py_TYPE(q) == PlainClass && broadcast_size(p, q, 2 * SmallLimit, multiplied) > 0;
}

/* As `numpy_operand`, or the view of an array of few elements on which nothing is pending, for a call of one pass. */
static PyObject *
one_pass_operand(PyObject *x)
{
    PyObject *a = numpy_operand(x);
    if (a == NULL && Py_TYPE(x) == Wrapped)
        a = viewable(x);
    return a != NULL && (Py_TYPE(a) != PlainClass || is_one_pass(a) || small_array(x) != NULL) ? a : NULL;
}
