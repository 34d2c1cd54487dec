/* Signals that wait (dcarray/core/interrupts.py): their handlers are the program's, and run between its own statements.
 *
 * While the main thread holds them, CPython takes it for another thread, in which it runs no handlers.  Compiled code that can be
 * undone looks at STOP, which is then the word where CPython notes that a signal has come; else it is a word that stays 0. */
#define Py_BUILD_CORE
#undef _PyGC_FINALIZED /* is defined again */
#define Store PythonsStore /* a name of another thing here */
#include <internal/pycore_runtime.h>
#undef Store
#undef Py_BUILD_CORE

#if PY_VERSION_HEX < 0x030C0000
#define SIGNALLED _PyRuntime.ceval.signals_pending
#else
#define SIGNALLED _PyRuntime.signals.is_tripped
#endif
enum { STOPPED = 1 << 4 }; /* among the flags of a launch: it was stopped */
static volatile void **Stop; /* where compiled code finds the word; NULL as long as there is none */
static volatile void *Never; /* the word that stays 0 */
static unsigned long Holder; /* the main thread, as long as it holds signals */

static int
has_signal(void)
{
    return *(volatile int *)&SIGNALLED != 0;
}

/* Run the handlers of signals that have come, between two statements of the main thread. */
static int
run_handlers(void *nothing)
{
    return PyErr_CheckSignals();
}

/* Have signals wait: the number by which `let_go` knows this thread, or 0 where they wait already, or run in another thread. */
static unsigned long
hold_signals(void)
{
    unsigned long thread = PyThread_get_thread_ident();
    if (thread != _PyRuntime.main_thread)
        return 0;
    _PyRuntime.main_thread = 0;
    return Holder = thread;
}

static void
let_go(unsigned long thread)
{
    if (thread == 0)
        return;
    _PyRuntime.main_thread = thread;
    Holder = 0;
    if (has_signal())
        Py_AddPendingCall(run_handlers, NULL);
}

/* Have the launches of this thread be stopped by a signal from now on, if that is possible. */
static int
allow_stop(int allowed)
{
    if (Stop == NULL || Holder == 0 || Holder != PyThread_get_thread_ident())
        return 0;
    *Stop = allowed ? (volatile void *)&SIGNALLED : Never;
    return 1;
}

/* Has a signal come for this thread, which holds it? */
static int
is_stopped(void)
{
    return has_signal() && Holder == PyThread_get_thread_ident();
}

/* What holds signals as long as it lives, and perhaps collections of garbage. */
typedef struct {
    PyObject_HEAD
    unsigned long thread;
    int uncollected;
} Hold;

static void
end_hold(PyObject *self)
{
    if (((Hold *)self)->uncollected) {
        PyObject *type, *value, *traceback;
        PyErr_Fetch(&type, &value, &traceback);
        may_collect();
        PyErr_Restore(type, value, traceback);
    }
    let_go(((Hold *)self)->thread);
    PyObject_Free(self);
}

static PyTypeObject HoldType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "dcarray._native.extension.Hold",
    .tp_basicsize = sizeof(Hold),
    .tp_dealloc = end_hold,
    .tp_flags = Py_TPFLAGS_DEFAULT,
};

/* hold(uncollected): an object, as long as which lives signals wait, and no garbage is collected if that is asked.  It ends in the
 * thread in which it begins. */
static PyObject *
hold(PyObject *module, PyObject *uncollected)
{
    Hold *holder = PyType_Ready(&HoldType) < 0 ? NULL : PyObject_New(Hold, &HoldType);
    if (holder == NULL)
        return NULL;
    holder->thread = hold_signals();
    if ((holder->uncollected = uncollected == Py_True))
        collect_nothing();
    return (PyObject *)holder;
}

/* set_stop(address): where compiled code finds the word. */
static PyObject *
set_stop(PyObject *module, PyObject *address)
{
    Stop = PyLong_AsVoidPtr(address);
    Never = Stop == NULL ? NULL : *Stop;
    return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
}

/* may_stop(allowed): whether a signal stops the launches of this thread from now on, if allowed. */
static PyObject *
may_stop(PyObject *module, PyObject *allowed)
{
    return PyBool_FromLong(allow_stop(allowed == Py_True));
}
