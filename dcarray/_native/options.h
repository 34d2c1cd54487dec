/* The options in force, and the ranks that run the program. */

static int MayView; /* may NumPy make views of large arrays?  Not where several ranks run the program */
static int OnDevice; /* as it was when `eager_below` was last asked for: does the option `device` put new arrays on another
                      * one than the CPU? */

/* Read these of options that were not asked last; returns `eager_below`, or -1 with an exception.  Apart, so that the
 * usual way stays short. */
static Py_ssize_t __attribute__((noinline))
read_options(PyObject *options)
{
    Py_ssize_t below = number_in(options, Below);
    PyObject *device = below < 0 ? NULL : PyObject_GetAttr(options, DeviceName);
    OnDevice = device != NULL && PyUnicode_Check(device) && PyUnicode_CompareWithASCIIString(device, "cpu") != 0;
    Py_XDECREF(device);
    return below;
}

/* The option `eager_below` in force, as `config.current` has it; -1 with an exception. */
static Py_ssize_t
eager_below(void)
{
    static PyObject *known; /* the options that were last asked: they never change */
    static Py_ssize_t below;
    PyObject *options, *process;
    if (PyContextVar_Get(Scoped, NULL, &options) < 0)
        return -1;
    if (options == Py_None) {
        process = PyDict_GetItemWithError(Options, Process);
        Py_SETREF(options, process != NULL && process != Py_None ? Py_NewRef(process) : PyObject_CallNoArgs(Current));
        if (options == NULL)
            return -1;
    }
    if (options == known) {
        Py_DECREF(options);
        return below;
    }
    below = read_options(options);
    Py_XSETREF(known, below < 0 ? NULL : Py_NewRef(options));
    Py_DECREF(options);
    return below;
}

/* Are new arrays put on another device than the CPU? */
static inline int
made_on_device(void)
{
    if (eager_below() < 0)
        PyErr_Clear();
    return OnDevice;
}

/* Is this thread a simulated rank, as `simulated` of dcarray/core/processes.py?  No exception is left. */
static int
simulated(void)
{
    static PyObject *current; /* a context variable: this thread's communicator, or None */
    PyObject *module, *comm = NULL;
    int one;
    if (current == NULL) {
        module = PyDict_GetItemWithError(PyImport_GetModuleDict(), Simulation);
        current = module == NULL ? NULL : PyObject_GetAttr(module, CurrentName);
        PyErr_Clear(); /* not yet there: another thread is importing it */
        if (current == NULL)
            return 0;
    }
    one = !PyContextVar_CheckExact(current) || PyContextVar_Get(current, NULL, &comm) < 0 || comm != Py_None;
    PyErr_Clear();
    Py_XDECREF(comm);
    return one;
}

/* Does one rank run the program?  What all have to do alike is recorded otherwise. */
static inline int
is_one_rank(void)
{
    return MayView && !simulated();
}
