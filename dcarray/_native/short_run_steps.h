/* The steps of a short run (short_runs.h): the checks of its values, its memory, its launches, and its results. */
#include <stddef.h>

enum { MOST_PARTS = 24, MOST_VALUES = 32, MOST_SIZES = 48, MOST_UNDONE = 1 << 16, MOST_LAUNCHES = 6, MOST_BLOCK = 40 };
/* Where a parameter's memory, or a result, is from. */
enum { GIVEN = 'g', NUMBER = 'f', INTEGER = 'i', FRESH = 'n', MADE = 'm', SCALAR = 's', ITEM = 'w', CONSTANT = 'c', SAME = 'a', EITHER = 'e' };
enum { REAL_OF = 'q', INTEGER_OF = 'k' }; /* numbers that a function computes from the values */
enum { BOUND = 'b' }; /* a result that a function makes of the values and the parameters' arrays */

typedef struct {
    char kind;
    int at;
    PyObject *first, *second; /* of fresh arrays the shape and the dtype; a constant */
} Part;

/* A size among the values: an int (axis -1), an item of a tuple, or the length of an array's axis; it is the symbol of this
 * number, or 0 where that is -1, plus something. */
typedef struct {
    int value, axis, symbol;
    long long added;
} SizePlace;

/* A launch of the driver (lowering/program/native_launches.py): its block (launches.h), and the parameters whose addresses are added
 * there, NO_ARRAY or TEMPORARY. */
enum { NO_ARRAY = -1, TEMPORARY = -2 };
typedef struct {
    int mask, stops, count;
    int64_t block[MOST_BLOCK];
    signed char at[MOST_BLOCK];
} NativeLaunch;

typedef struct {
    PyObject_HEAD
    vectorcallfunc call;
    PyObject *python; /* called with the same arguments where a check fails */
    PyObject *checks, *others, *names, *builtins; /* checks of the values: arguments, and these names' values */
    PyObject *driver, *symbols, *threads, *flags; /* what is called, and with what */
    PyObject *serves; /* called with other symbols: None, or the parameters' shapes, or () where these stay, and the integers
                       * of the launches' blocks, or () */
    PyObject *bound, *contexts; /* (dictionary, name, object it is bound to), (context variable, its value) */
    PyObject *failed; /* called with an error */
    PyObject *acquire, *release, *empty, *spec; /* the spec holds all objects of the parts */
    PyObject *shapes; /* of the parameters, where they depend on symbols */
    Part parameters[MOST_PARTS], results[MOST_PARTS];
    int busy; /* while it runs: a destructor or a signal handler may run the same statements */
    int undo; /* whether the arrays that it writes are restored where it fails */
    int given, parameter_count, result_count, symbol_count, symbol_at[MOST_VALUES], size_count;
    SizePlace sizes[MOST_SIZES];
    long long now[MOST_VALUES]; /* the symbols */
    NativeLaunch launches[MOST_LAUNCHES]; /* what the driver does; none where it has to be called */
    int known_launches, launch_count;
    Py_ssize_t temporary; /* bytes of temporary memory for these */
    long counted;
    double until, seconds;
    long long runs;
} ShortRun;

/* Are names bound to the same objects as before, and do context variables have the same values?  -1 with an error. */
static int
same_surroundings(ShortRun *s)
{
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(s->bound); k++) {
        PyObject *one = PyTuple_GET_ITEM(s->bound, k);
        PyObject *now = PyDict_GetItemWithError(PyTuple_GET_ITEM(one, 0), PyTuple_GET_ITEM(one, 1));
        if (now != PyTuple_GET_ITEM(one, 2))
            return PyErr_Occurred() ? -1 : 0;
    }
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(s->contexts); k++) {
        PyObject *one = PyTuple_GET_ITEM(s->contexts, k), *now;
        if (PyContextVar_Get(PyTuple_GET_ITEM(one, 0), NULL, &now) < 0)
            return -1;
        Py_XDECREF(now);
        if ((now == NULL ? Py_None : now) != PyTuple_GET_ITEM(one, 1))
            return 0;
    }
    return 1;
}

/* Find the values of other names, and check all; 0 if one is not as before, -1 with an error.  New references to the others. */
static int
find_values(ShortRun *s, PyObject *const *args, PyObject **values, Py_ssize_t *count, Span *spans, int *arrays)
{
    int meets = 1;
    for (int k = 0; k < s->given; k++)
        values[k] = args[k];
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(s->others); k++) {
        PyObject *name = PyTuple_GET_ITEM(s->others, k), *value = PyDict_GetItemWithError(s->names, name);
        if (value == NULL && !PyErr_Occurred())
            value = PyDict_GetItemWithError(s->builtins, name);
        if (value == NULL)
            return PyErr_Occurred() ? -1 : 0;
        values[s->given + k] = Py_NewRef(value);
        (*count)++;
    }
    for (Py_ssize_t k = 0; meets > 0 && k < PyTuple_GET_SIZE(s->checks); k++)
        meets = meets_check(values[k], PyTuple_GET_ITEM(s->checks, k), spans, arrays, 0);
    return meets > 0 ? are_apart(spans, *arrays) : meets;
}

/* Copy the memory that a run may write to a buffer, or back from there. */
static void
copy_written(const Span *spans, int arrays, char *buffer, int back)
{
    for (int k = 0; k < arrays; k++) {
        size_t size = spans[k].high - spans[k].low;
        if (!spans[k].written)
            continue;
        memcpy(back ? spans[k].low : buffer, back ? buffer : spans[k].low, size);
        buffer += size;
    }
}

/* A copy of the memory that a run may write; NULL if it is too large. */
static char *
written_memory(const Span *spans, int arrays)
{
    size_t size = 0;
    char *buffer;
    for (int k = 0; k < arrays; k++)
        if (spans[k].written)
            size += spans[k].high - spans[k].low;
    buffer = size > MOST_UNDONE ? NULL : PyMem_Malloc(size);
    if (buffer != NULL)
        copy_written(spans, arrays, buffer, 0);
    return buffer;
}

/* A size among the values; -1 with an error, which is no other size of theirs but that of an int. */
static long long
size_at(const SizePlace *z, PyObject **values)
{
    PyObject *x = values[z->value];
    if (z->axis < 0)
        return PyLong_AsLongLong(x);
    if (PyTuple_CheckExact(x))
        return PyLong_AsLongLong(PyTuple_GET_ITEM(x, z->axis)); /* its check has looked at its length */
    return ((Array *)x)->shape[z->axis];
}

/* Take the integers of the launches' blocks over; without them, or if one is too large, the driver is called. */
static void
take_numbers(ShortRun *s, PyObject *numbers)
{
    Py_ssize_t next = 0, count = PyTuple_GET_SIZE(numbers);
    for (int k = 0; k < s->known_launches; k++)
        for (int j = 0; j < s->launches[k].count && next < count; j++)
            s->launches[k].block[j] = PyLong_AsLongLong(PyTuple_GET_ITEM(numbers, next++));
    s->launch_count = count > 0 && !PyErr_Occurred() ? s->known_launches : 0;
    PyErr_Clear();
}

/* May the plan run with these symbols?  New arrays get their shapes then; -1 with an error. */
static int
serves_symbols(ShortRun *s, PyObject *symbols)
{
    PyObject *reply = PyObject_CallOneArg(s->serves, symbols), *shapes = NULL, *numbers;
    int served = reply == NULL ? -1 : reply != Py_None;
    if (served > 0 && !PyArg_ParseTuple(reply, "O!O!", &PyTuple_Type, &shapes, &PyTuple_Type, &numbers))
        served = -1;
    if (served > 0)
        take_numbers(s, numbers);
    if (served > 0)
        Py_XSETREF(s->shapes, Py_NewRef(shapes));
    Py_XDECREF(reply);
    return served;
}

/* Are the symbols as before, or may the plan run with the new ones?  -1 with an error. */
static int
take_symbols(ShortRun *s, PyObject **values)
{
    PyObject *now;
    long long sizes[MOST_SIZES], symbols[MOST_SIZES];
    int same = 1;
    for (int k = 0; k < s->size_count; k++) {
        sizes[k] = size_at(&s->sizes[k], values);
        if (sizes[k] == -1 && PyErr_Occurred()) {
            PyErr_Clear(); /* it is too large */
            return 0;
        }
    }
    for (int k = 0; k < s->symbol_count; k++)
        symbols[k] = sizes[s->symbol_at[k]];
    for (int k = 0; k < s->size_count; k++) {
        const SizePlace *z = &s->sizes[k];
        if (sizes[k] != (z->symbol < 0 ? 0 : symbols[z->symbol]) + z->added)
            return 0;
    }
    for (int k = 0; same && k < s->symbol_count; k++)
        same = symbols[k] == s->now[k];
    if (same)
        return 1;
    if ((now = PyTuple_New(s->symbol_count)) == NULL)
        return -1;
    for (int k = 0; now != NULL && k < s->symbol_count; k++)
        set_or_clear(&now, k, PyLong_FromLongLong(symbols[k]));
    if (now == NULL)
        return -1;
    same = serves_symbols(s, now);
    if (same > 0) {
        Py_SETREF(s->symbols, Py_NewRef(now));
        memcpy(s->now, symbols, sizeof(s->now));
    }
    Py_DECREF(now);
    return same;
}

static PyObject *
tuple_of(PyObject *const *values, Py_ssize_t count)
{
    PyObject *all = PyTuple_New(count);
    for (Py_ssize_t k = 0; all != NULL && k < count; k++)
        PyTuple_SET_ITEM(all, k, Py_NewRef(values[k]));
    return all;
}

/* The site's values in a tuple. */
static PyObject *
all_values(ShortRun *s, PyObject **values)
{
    return tuple_of(values, s->given + PyTuple_GET_SIZE(s->others));
}

/* A result that a function makes, such as a tuple of others. */
static PyObject *
bound_by(ShortRun *s, PyObject *function, PyObject **values, PyObject **fresh)
{
    PyObject *all = all_values(s, values), *arrays = PyList_New(s->parameter_count), *none = PyList_New(0), *bound = NULL;
    for (int k = 0; arrays != NULL && k < s->parameter_count; k++) {
        Part *p = &s->parameters[k];
        PyList_SET_ITEM(arrays, k, Py_NewRef(fresh[k] != NULL ? fresh[k] : p->kind == GIVEN ? values[p->at] : Py_None));
    }
    if (all != NULL && arrays != NULL && none != NULL) {
        PyObject *of[] = {all, arrays, none, Py_False};
        bound = PyObject_Vectorcall(function, of, 4, NULL);
    }
    Py_XDECREF(all);
    Py_XDECREF(arrays);
    Py_XDECREF(none);
    return bound;
}

/* The results of a run in a tuple. */
static PyObject *
bound_results(ShortRun *s, PyObject **values, PyObject **fresh)
{
    PyObject *results = PyTuple_New(s->result_count), *nothing = PyTuple_New(0);
    for (int k = 0; results != NULL && k < s->result_count; k++) {
        Part *r = &s->results[k];
        PyObject *value = NULL;
        if (r->kind == MADE)
            value = Py_NewRef(fresh[r->at]);
        else if (r->kind == GIVEN)
            value = Py_NewRef(values[r->at]);
        else if (r->kind == SAME)
            value = Py_NewRef(PyTuple_GET_ITEM(results, r->at));
        else if (r->kind == CONSTANT)
            value = Py_NewRef(r->first);
        else if (r->kind == BOUND)
            value = bound_by(s, r->first, values, fresh);
        else if (r->kind == EITHER && !*((Array *)fresh[PyLong_AsLong(r->first)])->data) /* of Python's type */
            value = PyObject_CallOneArg(r->second, fresh[r->at]);
        else if (r->kind == SCALAR || r->kind == EITHER)
            value = PyObject_GetItem(fresh[r->at], nothing);
        else
            value = PyObject_CallMethod(fresh[r->at], "item", NULL);
        set_or_clear(&results, k, value);
    }
    Py_XDECREF(nothing);
    return results;
}

/* Compute a number from the values; 0 if it is not of the part's kind, -1 with an error. */
static int
compute_number(ShortRun *s, const Part *p, PyObject **values, double *real, int64_t *integer)
{
    PyObject *all = all_values(s, values), *number;
    int over = 1;
    number = all == NULL ? NULL : PyObject_CallOneArg(p->first, all);
    Py_XDECREF(all);
    if (number == NULL)
        return -1;
    if (p->kind == REAL_OF && PyFloat_Check(number)) {
        *real = PyFloat_AS_DOUBLE(number);
        over = 0;
    }
    else if (p->kind == INTEGER_OF && PyLong_CheckExact(number))
        *integer = PyLong_AsLongLongAndOverflow(number, &over);
    Py_DECREF(number);
    return !over;
}

/* Do what the driver does: the flags that were raised; -1 if the driver has to be called, for several threads or memory. */
static int
launch_all(ShortRun *s, void **addresses)
{
    char *temporary = s->temporary ? PyMem_Malloc(s->temporary + 64) : NULL;
    int flags = s->launch_count == 0 || (s->temporary && temporary == NULL) ? -1 : 0;
    for (int k = 0; flags >= 0 && k < s->launch_count; k++) {
        const NativeLaunch *n = &s->launches[k];
        int64_t block[MOST_BLOCK];
        int raised;
        if (flags & STOPPED || (n->stops && flags & s->counted))
            break;
        for (int j = 0; j < n->count; j++)
            block[j] = n->block[j] + (n->at[j] >= 0          ? (intptr_t)addresses[n->at[j]]
                                      : n->at[j] == TEMPORARY ? ((intptr_t)temporary + 63) & ~(intptr_t)63
                                                              : 0);
        Py_BEGIN_ALLOW_THREADS
        raised = launch(0, block);
        Py_END_ALLOW_THREADS
        flags = raised < 0 ? -1 : flags | (raised & (n->mask | STOPPED));
    }
    PyMem_Free(temporary);
    if (flags < 0)
        s->launch_count = 0; /* until the symbols change, or the next arm */
    return flags;
}

/* Call the driver: the flags that were raised; -1 with an error, -2 if Python has to run the statements. */
static long
call_driver(ShortRun *s, void **addresses)
{
    PyObject *list = PyList_New(s->parameter_count), *none = PyTuple_New(0), *raised = NULL;
    long flags = -1;
    for (int k = 0; list != NULL && k < s->parameter_count; k++) {
        PyObject *number = PyLong_FromVoidPtr(addresses[k]);
        if (number == NULL)
            Py_CLEAR(list);
        else
            PyList_SET_ITEM(list, k, number);
    }
    if (list != NULL && none != NULL) {
        PyObject *of[] = {none, list, s->symbols, s->threads, s->flags};
        raised = PyObject_Vectorcall(s->driver, of, 5, NULL);
    }
    if (raised != NULL)
        flags = PyLong_AsLong(raised);
    else if (PyErr_ExceptionMatches(PyExc_Exception)) {
        PyErr_Clear(); /* Python runs it again, and finds the same */
        flags = -2;
    }
    Py_XDECREF(raised);
    Py_XDECREF(none);
    Py_XDECREF(list);
    return flags;
}

/* Run the driver: 1 with results, 0 if the run has to be Python's, -1 with an error.  Then memory is as before.  ``take`` is
 * called with the results, unless it is NULL. */
static int
run_short(ShortRun *s, PyObject **values, const Span *spans, int arrays, PyObject *take, PyObject **results)
{
    union { double real; int64_t integer; } numbers[MOST_PARTS];
    PyObject *fresh[MOST_PARTS] = {0};
    void *addresses[MOST_PARTS];
    char *before = NULL;
    int done = 1;
    for (int k = 0; done > 0 && k < s->parameter_count; k++) {
        Part *p = &s->parameters[k];
        void *address = &numbers[k];
        int over = 0;
        if (p->kind == GIVEN)
            address = ((Array *)values[p->at])->data;
        else if (p->kind == NUMBER)
            numbers[k].real = PyFloat_AS_DOUBLE(values[p->at]);
        else if (p->kind == INTEGER)
            numbers[k].integer = PyLong_AsLongLongAndOverflow(values[p->at], &over);
        else if (p->kind == REAL_OF || p->kind == INTEGER_OF)
            done = compute_number(s, p, values, &numbers[k].real, &numbers[k].integer);
        else {
            PyObject *of[] = {k < PyTuple_GET_SIZE(s->shapes) ? PyTuple_GET_ITEM(s->shapes, k) : p->first, p->second};
            fresh[k] = PyObject_Vectorcall(s->empty, of, 2, NULL);
            if (fresh[k] == NULL)
                done = -1;
            else
                address = ((Array *)fresh[k])->data;
        }
        if (over)
            done = 0;
        addresses[k] = address;
    }
    if (done > 0 && s->undo && (before = written_memory(spans, arrays)) == NULL)
        done = 0;
    if (done > 0) {
        long flags;
        allow_stop(1);
        flags = launch_all(s, addresses);
        if (flags < 0) {
            if (before != NULL) /* some launches may have been made */
                copy_written(spans, arrays, before, 1);
            flags = call_driver(s, addresses);
        }
        allow_stop(0);
        done = flags == -1 ? -1 : flags != -2 && !(flags & (s->counted | STOPPED));
    }
    if (done > 0 && (*results = bound_results(s, values, fresh)) == NULL)
        done = -1;
    if (done > 0 && take != NULL) {
        PyObject *none = PyObject_CallOneArg(take, *results);
        if (none == NULL) {
            Py_CLEAR(*results);
            done = -1;
        }
        Py_XDECREF(none);
    }
    for (int k = 0; k < s->parameter_count; k++)
        Py_XDECREF(fresh[k]);
    if (done <= 0 && before != NULL)
        copy_written(spans, arrays, before, 1);
    PyMem_Free(before);
    return done;
}
