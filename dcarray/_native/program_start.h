/* The start of a program beneath which nothing is: its frames, and the depth of its calls, are those of plain Python. */

/* run_as_first(code, names): run a code object as the first one of the thread. */
static PyObject *
run_as_first(PyObject *module, PyObject *args)
{
    PyThreadState *thread = PyThreadState_Get();
    PyObject *code, *names, *result;
#if PY_VERSION_HEX < 0x030D0000
    struct _PyInterpreterFrame **frame = &thread->cframe->current_frame, *outer = *frame;
#else
    struct _PyInterpreterFrame **frame = &thread->current_frame, *outer = *frame;
#endif
#if PY_VERSION_HEX < 0x030C0000
    int *left = &thread->recursion_remaining, used = thread->recursion_limit - *left;
#else
    int *left = &thread->py_recursion_remaining, used = thread->py_recursion_limit - *left;
#endif
    if (!PyArg_ParseTuple(args, "O!O!", &PyCode_Type, &code, &PyDict_Type, &names))
        return NULL;
    *frame = NULL;
    *left += used;
    result = PyEval_EvalCode(code, names, names);
    *left -= used; /* the program may have changed the limit */
    *frame = outer;
    return result;
}
