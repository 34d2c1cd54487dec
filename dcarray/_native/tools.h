/* Tools: debuggers, profilers and the like, which see a thread's calls and lines (dcarray/core/tools.py). */
static int Monitored; /* whether a tool may be registered with sys.monitoring, which Python 3.12 and later have */

#if PY_VERSION_HEX >= 0x030C0000
/* Hear of what registers: an event is announced for all of CPython, but costs each call of id(), too. */
static int
hear_monitoring(const char *event, PyObject *args, void *nothing)
{
    Monitored |= strcmp(event, "sys.monitoring.register_callback") == 0;
    return 0;
}
#endif

/* Is a tool registered with sys.monitoring?  -1 with an error. */
static int
is_monitored(void)
{
    PyObject *monitoring = Monitored ? PySys_GetObject("monitoring") : NULL; /* borrowed */
    for (int k = 0; monitoring != NULL && k < 6; k++) {
        PyObject *tool = PyObject_CallMethod(monitoring, "get_tool", "i", k);
        Py_XDECREF(tool);
        if (tool != Py_None)
            return tool == NULL ? -1 : 1;
    }
    return 0;
}

enum { ROOM = 100 }; /* frames that it takes to find compiled code, and to run it */

/* The truth of UNSEEN: whether no tool sees this thread, and it is so far from the limit of recursion that only the program's own
 * calls can come to that. */
static int
is_unseen(PyObject *self)
{
    PyThreadState *state = PyThreadState_Get();
    int monitored = is_monitored();
    if (monitored < 0)
        return -1;
    return !monitored && state->c_tracefunc == NULL && state->c_profilefunc == NULL && frames_left(state) > ROOM;
}

static PyNumberMethods unseen_numbers = {.nb_bool = is_unseen};
static PyTypeObject UnseenType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "dcarray._native.extension.Unseen",
    .tp_basicsize = sizeof(PyObject),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_as_number = &unseen_numbers,
};

/* listen(): an object that is true in threads that no tool sees; called once. */
static PyObject *
listen_to_tools(PyObject *module, PyObject *nothing)
{
#if PY_VERSION_HEX >= 0x030C0000
    if (PySys_AddAuditHook(hear_monitoring, NULL) < 0)
        return NULL;
    Monitored = 1; /* a tool may have come before */
    if ((Monitored = is_monitored()) < 0)
        return NULL;
#endif
    return PyType_Ready(&UnseenType) < 0 ? NULL : PyObject_New(PyObject, &UnseenType);
}
