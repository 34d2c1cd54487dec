/* Eager periods: times in which NumPy does at once what one thread asks for (dcarray/tiering/eager_period.py). */

#include <time.h>

static unsigned long EagerThread; /* the thread in an eager period, or 0; */
static double EagerUntil;         /* and until when */
static int Suspended; /* how often `suspend` was called, less `resume` */

static double
seconds(void)
{
#ifdef CLOCK_MONOTONIC
    struct timespec now;
    if (clock_gettime(CLOCK_MONOTONIC, &now) == 0)
        return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
#endif
    return (double)clock() / CLOCKS_PER_SEC;
}

/* Is a thread in an eager period? */
static inline int
any_eager_period(void)
{
    return EagerThread && seconds() < EagerUntil;
}

/* As `in_eager_period`, or was it until a moment ago?  That costs no look at the clock. */
static inline int
lately_eager(void)
{
    return EagerThread && !Suspended && EagerThread == PyThread_get_thread_ident();
}

/* Is this thread in an eager period: does NumPy do at once whatever it asks for? */
static inline int
in_eager_period(void)
{
    if (!EagerThread || Suspended || EagerThread != PyThread_get_thread_ident())
        return 0;
    if (seconds() < EagerUntil)
        return 1;
    EagerThread = 0;
    return 0;
}

/* begin_eager_period(seconds): for so long NumPy does at once what this thread asks for; True, or False if a thread,
 * this one or another, is in such a time already, or if everything is to be recorded. */
static PyObject *
begin_eager_period(PyObject *module, PyObject *length)
{
    double given = PyFloat_AsDouble(length);
    if (given == -1 && PyErr_Occurred())
        return NULL;
    in_eager_period(); /* a time of this thread's that has passed ends */
    if (Suspended || any_eager_period())
        Py_RETURN_FALSE;
    EagerThread = PyThread_get_thread_ident();
    EagerUntil = seconds() + given;
    Py_RETURN_TRUE;
}

/* end_eager_period(): this thread's time is over. */
static PyObject *
end_eager_period(PyObject *module, PyObject *unused)
{
    if (in_eager_period())
        EagerThread = 0;
    Py_RETURN_NONE;
}

/* expire_eager_period(): that of whatever thread is over as soon as it looks. */
static PyObject *
expire_eager_period(PyObject *module, PyObject *unused)
{
    EagerUntil = 0;
    Py_RETURN_NONE;
}

/* in_eager_period(): is this thread in such a time? */
static PyObject *
eager_period_state(PyObject *module, PyObject *unused)
{
    return PyBool_FromLong(in_eager_period());
}

/* suspend(change): add 1 or -1 to the number of reasons for which no call site counts as promoted. */
static PyObject *
suspend_sites(PyObject *module, PyObject *more)
{
    long change = PyLong_AsLong(more);
    if (change == -1 && PyErr_Occurred())
        return NULL;
    Suspended += (int)change;
    Py_RETURN_NONE;
}
