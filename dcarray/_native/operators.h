/* The number slots of the class, for operands that NumPy can take at once; the methods in dcarray/api/array.py say what an
 * operator means. */

static PyObject *
product(PyObject *p, PyObject *q)
{
    PyObject *r = matmul_by_loop(p, q);
    return r != NULL ? r : PyNumber_MatrixMultiply(p, q);
}

/* ---- operators --------------------------------------------------------------------------------- */
/* The names of the methods of a binary operator, which Python's own slot function finds only where it is the slot itself,
 * and of its ufunc, if that is all there is to it. */
typedef struct {
    PyObject *forward, *reflected, *name;
} Methods;

/* A binary operator by recording, or by its methods in Python, in Python's order: that of a subclass first. */
static PyObject *
by_method(Methods *methods, PyObject *a, PyObject *b)
{
    PyObject *forth[2] = {a, b}, *back[2] = {b, a}, *r;
    if (methods->name != NULL) {
        r = record_call(methods->name, forth, 2, NULL);
        if (r != NULL || PyErr_Occurred())
            return r;
    }
    if (Py_TYPE(a) == Wrapped && is_device_class(Py_TYPE(b))) {
        r = PyObject_VectorcallMethod(methods->reflected, back, 2, NULL);
        if (r != Py_NotImplemented)
            return r;
        Py_DECREF(r);
    }
    if (PyObject_TypeCheck(a, Wrapped))
        return PyObject_VectorcallMethod(methods->forward, forth, 2, NULL);
    if (PyObject_TypeCheck(b, Wrapped))
        return PyObject_VectorcallMethod(methods->reflected, back, 2, NULL);
    Py_RETURN_NOTIMPLEMENTED;
}

static int
find_methods(Methods *methods, const char *forward, const char *reflected, const char *ufunc)
{
    if (*ufunc && (methods->name = PyUnicode_InternFromString(ufunc)) == NULL)
        return -1;
    methods->forward = PyUnicode_InternFromString(forward);
    methods->reflected = PyUnicode_InternFromString(reflected);
    return methods->forward == NULL || methods->reflected == NULL ? -1 : 0;
}

/* A call of a ufunc by recording, or by NULL without an exception, if that declines. */
static PyObject *
recorded(PyObject *ufunc, PyObject *a, PyObject *b, PyObject *out)
{
    PyObject *inputs[2] = {a, b}, *name = UfuncNames == NULL ? NULL : PyDict_GetItemWithError(UfuncNames, ufunc);
    return name == NULL ? NULL : record_call(name, inputs, b == NULL ? 1 : 2, out);
}

/* The operands as NumPy can take them at once, if what it makes of them is not better recorded. */
static inline int
both_at_hand(PyObject *a, PyObject *b, PyObject **p, PyObject **q, int multiplied)
{
    return (*p = numpy_operand(a)) != NULL && (*q = numpy_operand(b)) != NULL && !is_worth_recording(*p, *q, multiplied);
}

#define BINARY(slot, op, name, ufunc)                                                                \
    static Methods methods_##slot;                                                                   \
    static PyObject *fast_##slot(PyObject *a, PyObject *b)                                           \
    {                                                                                                \
        PyObject *p, *q;                                                                             \
        if (!both_at_hand(a, b, &p, &q, op == product))                                                 \
            return by_method(&methods_##slot, a, b);                                                 \
        return wrap_result(op(p, q));                                                                       \
    }
#define INPLACE(slot, op, ufunc)                                                                     \
    static binaryfunc slow_##slot;                                                                   \
    static PyObject *fast_##slot(PyObject *a, PyObject *b)                                           \
    {                                                                                                \
        PyObject *p = eager_array(a), *q = p == NULL ? NULL : numpy_operand(b), *r;                              \
        if (q == NULL) {                                                                             \
            r = recorded(np_##ufunc, a, b, a);                                                       \
            return r != NULL || PyErr_Occurred() ? r : slow_##slot(a, b);                            \
        }                                                              \
        if ((r = op(p, q)) == NULL)                                                                  \
            return NULL;                                                                             \
        Py_DECREF(r);                                                                                \
        return Py_NewRef(a);                                                                         \
    }
#define UNARY(slot, op, ufunc)                                                                       \
    static unaryfunc slow_##slot;                                                                    \
    static PyObject *fast_##slot(PyObject *a)                                                        \
    {                                                                                                \
        PyObject *p = eager_array(a), *r;                                                                  \
        if (p == NULL) {                                                                             \
            r = recorded(np_##ufunc, a, NULL, NULL);                                                 \
            return r != NULL || PyErr_Occurred() ? r : slow_##slot(a);                               \
        }                                                                   \
        return wrap_result(op(p));                                                                          \
    }
#define BINARIES(X)                                                                                  \
    X(nb_add, PyNumber_Add, "add", add)                                                              \
    X(nb_subtract, PyNumber_Subtract, "sub", subtract)                                               \
    X(nb_multiply, PyNumber_Multiply, "mul", multiply)                                               \
    X(nb_true_divide, PyNumber_TrueDivide, "truediv", divide)                                        \
    X(nb_floor_divide, PyNumber_FloorDivide, "floordiv", floor_divide)                               \
    X(nb_remainder, PyNumber_Remainder, "mod", remainder)                                            \
    X(nb_divmod, PyNumber_Divmod, "divmod", )                                                        \
    X(nb_matrix_multiply, product, "matmul", )                                                       \
    X(nb_and, PyNumber_And, "and", bitwise_and)                                                      \
    X(nb_or, PyNumber_Or, "or", bitwise_or)                                                          \
    X(nb_xor, PyNumber_Xor, "xor", bitwise_xor)                                                      \
    X(nb_lshift, PyNumber_Lshift, "lshift", left_shift)                                              \
    X(nb_rshift, PyNumber_Rshift, "rshift", right_shift)
#define INPLACES(X)                                                                                  \
    X(nb_inplace_add, PyNumber_InPlaceAdd, add)                                                      \
    X(nb_inplace_subtract, PyNumber_InPlaceSubtract, subtract)                                       \
    X(nb_inplace_multiply, PyNumber_InPlaceMultiply, multiply)                                       \
    X(nb_inplace_true_divide, PyNumber_InPlaceTrueDivide, divide)                                    \
    X(nb_inplace_floor_divide, PyNumber_InPlaceFloorDivide, floor_divide)                            \
    X(nb_inplace_remainder, PyNumber_InPlaceRemainder, remainder)                                    \
    X(nb_inplace_and, PyNumber_InPlaceAnd, bitwise_and)                                              \
    X(nb_inplace_or, PyNumber_InPlaceOr, bitwise_or)                                                 \
    X(nb_inplace_xor, PyNumber_InPlaceXor, bitwise_xor)
#define UNARIES(X)                                                                                   \
    X(nb_negative, PyNumber_Negative, negative)                                                      \
    X(nb_positive, PyNumber_Positive, positive)                                                      \
    X(nb_absolute, PyNumber_Absolute, absolute)                                                      \
    X(nb_invert, PyNumber_Invert, invert)

BINARIES(BINARY)
INPLACES(INPLACE)
UNARIES(UNARY)

static Methods methods_nb_power;
static PyObject *
fast_nb_power(PyObject *a, PyObject *b, PyObject *modulus)
{
    PyObject *p, *q;
    if (modulus != Py_None)
        Py_RETURN_NOTIMPLEMENTED;
    p = numpy_operand(a);
    q = p == NULL ? NULL : numpy_operand(b);
    if (q != NULL && !is_worth_recording(p, q, 0))
        return wrap_result(PyNumber_Power(p, q, Py_None));
    return by_method(&methods_nb_power, a, b);
}

static ternaryfunc slow_nb_inplace_power;
static PyObject *
fast_nb_inplace_power(PyObject *a, PyObject *b, PyObject *modulus)
{
    PyObject *p = modulus == Py_None ? eager_array(a) : NULL, *q = p == NULL ? NULL : numpy_operand(b), *r;
    if (q == NULL)
        return slow_nb_inplace_power(a, b, modulus);
    r = PyNumber_InPlacePower(p, q, Py_None);
    if (r == NULL)
        return NULL;
    Py_DECREF(r);
    return Py_NewRef(a);
}

static richcmpfunc slow_compare;
static PyObject *
fast_compare(PyObject *a, PyObject *b, int op)
{
    PyObject *const ufuncs[] = {np_less, np_less_equal, np_equal, np_not_equal, np_greater, np_greater_equal};
    PyObject *p = one_pass_operand(a), *q = p == NULL ? NULL : one_pass_operand(b), *r;
    if (q == NULL || is_worth_recording(p, q, 0)) {
        r = recorded(ufuncs[op], a, b, NULL);
        return r != NULL || PyErr_Occurred() ? r : slow_compare(a, b, op);
    }
    return wrap_result(PyObject_RichCompare(p, q, op));
}
