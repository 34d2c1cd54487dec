/* The operands of the operator that Python's interpreter is running, where it has them: on the stack of its frame.
 *
 * A binary operator of Python's code leaves both there while it runs.  How many values are below them is the same
 * whenever that instruction runs; dcarray/core/stack_depth.py finds it out once.  If what is there are the very objects
 * that the operator of the class was called with, then it was called for just this instruction, and the reference that
 * the stack has is dropped as soon as the operator is done.  In versions of CPython whose frames look otherwise nothing
 * is found. */

#if PY_VERSION_HEX >= 0x030B0000 && PY_VERSION_HEX < 0x030E0000 && !defined(Py_GIL_DISABLED) && !defined(PYPY_VERSION)
enum { DEPTHS = 256 };
static struct {
    PyObject *code; /* a reference */
    int instruction, depth;
} Depths[DEPTHS];
static PyObject *StackDepth; /* dcarray.core.stack_depth.stack_depth, once it is needed */

/* How a frame object, and the interpreter's frame that it stands for, begin: up to the values of its names. */
typedef struct {
    PyObject_HEAD
    PyObject *back;
    struct InterpreterFrame {
        void *pointers[8];
        int top;
        short offset;
        char owner;
        PyObject *values[1]; /* of its names, and then the stack */
    } *frame;
} FrameObject;

/* The number of values on the stack before a binary operator; -1 where that is not known, or where there is none. */
static int
depth_at(PyObject *code, int instruction)
{
    size_t k = (((uintptr_t)code >> 4) * 31 + (unsigned)instruction / 2) % DEPTHS;
    PyObject *found, *module, *old;
    long depth;
    if (Depths[k].code == code && Depths[k].instruction == instruction)
        return Depths[k].depth;
    if (StackDepth == NULL) {
        if ((module = PyImport_ImportModule("dcarray.core.stack_depth")) == NULL)
            goto fail;
        StackDepth = PyObject_GetAttrString(module, "stack_depth");
        Py_DECREF(module);
        if (StackDepth == NULL)
            goto fail;
    }
    if ((found = PyObject_CallFunction(StackDepth, "Oi", code, instruction)) == NULL)
        goto fail;
    depth = PyLong_AsLong(found);
    Py_DECREF(found);
    old = Depths[k].code;
    Depths[k].code = Py_NewRef(code);
    Depths[k].instruction = instruction;
    Depths[k].depth = (int)depth;
    Py_XDECREF(old);
    return (int)depth;
fail:
    PyErr_Clear();
    return -1;
}

/* Are these the operands of the binary operator that the interpreter is running? */
static int
are_operands_here(PyObject *a, PyObject *b)
{
    PyFrameObject *frame = PyEval_GetFrame();
    PyCodeObject *code;
    PyObject **stack;
    int depth;
    if (frame == NULL)
        return 0;
    code = PyFrame_GetCode(frame);
    depth = depth_at((PyObject *)code, PyFrame_GetLasti(frame));
    stack = ((FrameObject *)frame)->frame->values + code->co_nlocalsplus;
    Py_DECREF(code); /* the frame holds it */
    return depth >= 2 && stack[depth - 2] == a && stack[depth - 1] == b;
}
#else
static int
are_operands_here(PyObject *a, PyObject *b)
{
    return 0;
}
#endif
