/* The numbers and names that C and Python share, each written once.  The module exports the numbers under these names
 * (dcarray/_native/extension.pyi declares them), and looks up the slots when it is installed. */

/* The first argument of a function that makes a small array: a shape, or a shape before a value; ends and a step; rows
 * and perhaps columns; the elements; the shape of an uninitialised array; the array itself, if it is a wrapped one, perhaps
 * only in C order; or any arguments of a random generator. */
#define MAKERS(X)                                                                                                  \
    X(SHAPED) X(FILLED) X(RANGED) X(SQUARE) X(LISTED) X(UNWRITTEN) X(ITSELF) X(ROWWISE) X(DRAWN)

/* The checks of a value at a loop. */
#define CHECKS(X) X(PLAIN_ARRAY) X(WRAPPED_ARRAY) X(C_ORDER) X(IDENTITY) X(OF_TYPE) X(EQUAL_INT) X(FUNCTION) X(TUPLE)

/* The functions of NumPy whose results are known here, with their names. */
#define ANSWERS_OF(X)                                                                                              \
    X(SHAPE, "shape") X(NDIM, "ndim") X(SIZE, "size") X(ISCOMPLEX, "iscomplexobj") X(ISREAL, "isrealobj")          \
    X(AT_LEAST_1D, "atleast_1d") X(AT_LEAST_2D, "atleast_2d") X(SQUEEZE, "squeeze") X(TRANSPOSE, "transpose")      \
    X(FLIP, "flip") X(REAL, "real") X(IMAG, "imag") X(EMPTY_LIKE, "empty_like") X(RESULT_TYPE, "result_type")      \
    X(COPYTO, "copyto") X(DOT, "dot") X(COPY, "copy")

/* The slots of handles, stores and recordings that C reads, with the variables that hold their offsets. */
#define HANDLE_SLOTS(X)                                                                                            \
    X("_small", Small) X("_store", Store) X("_shape", Shape) X("_index", Index) X("_readonly", Readonly)           \
    X("_ndarray", View) X("_small_view", SmallView) X("_origin", Origin)
#define STORE_SLOTS(X)                                                                                             \
    X("_head", Head) X("used", Used) X("dirty", Dirty) X("char", Char) X("mem", Mem) X("address", Address)         \
    X("dtype", Dtype) X("shape", Geometry) X("size", Size) X("permuted", Permuted) \
    X("exports", Exports) X("remote", Remote) X("strides", Strides) X("rec", Recorded) X("slot", Slot)
#define RECORDING_SLOTS(X)                                                                                         \
    X("done", Done) X("due", Due) X("log", Log) X("slots", Slots) X("news", News) X("sites", Sites)                \
    X("state", State) X("entry_limit", EntryLimit) X("urgent", Urgent) X("kinds", Kinds) X("arena", Arena)         \
    X("device", Device) X("parts", Parts) X("iteration_ends", IterationEnds)         \
    X("held_elements", HeldElements)

#define IN_ENUM(name) name,
#define NAMED_IN_ENUM(name, text) name,
enum { MAKERS(IN_ENUM) };
enum { CHECKS(IN_ENUM) };
enum { PASS = 8 }; /* as in dcarray/tiering/policy.py */
enum { UNANSWERED, ANSWERS_OF(NAMED_IN_ENUM) ANSWERS };

#define OFFSET(text, variable) static Py_ssize_t variable;
HANDLE_SLOTS(OFFSET)
STORE_SLOTS(OFFSET)
RECORDING_SLOTS(OFFSET)
#define ITS_OFFSET(text, variable) &variable,
static Py_ssize_t *const HandleSlots[] = {HANDLE_SLOTS(ITS_OFFSET)};

/* Put a new reference into a new tuple, or give the tuple up where there is none. */
static inline void
set_or_clear(PyObject **tuple, Py_ssize_t k, PyObject *item)
{
    if (item == NULL)
        Py_CLEAR(*tuple);
    else
        PyTuple_SET_ITEM(*tuple, k, item);
}

/* Give the module its constants: the numbers, and the tuple ANSWERED of names in the order of their numbers. */
static int
add_constants(PyObject *module)
{
#define NAMED(name, text) text,
    static const char *const names[] = {ANSWERS_OF(NAMED)};
    PyObject *answered = PyTuple_New(ANSWERS - 1);
    if (answered == NULL)
        return -1;
    for (int k = 0; k < ANSWERS - 1; k++) {
        PyObject *name = PyUnicode_FromString(names[k]);
        if (name == NULL) {
            Py_DECREF(answered);
            return -1;
        }
        PyTuple_SET_ITEM(answered, k, name);
    }
    if (PyModule_AddObject(module, "ANSWERED", answered) < 0) {
        Py_DECREF(answered);
        return -1;
    }
#define ADDED(name) || PyModule_AddIntConstant(module, #name, name) < 0
    return 0 MAKERS(ADDED) CHECKS(ADDED) ? -1 : 0;
}
