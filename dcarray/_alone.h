/* Places in the user's code where NumPy works on large arrays at once; see alone.py.
 *
 * A place is a code object and an instruction in it.  The table is a cache: two places that fall together push
 * each other out.  Included where what it uses is declared. */

enum { PLACES = 1024, STRIKES = 3 };

typedef struct {
    PyObject *code;
    int instruction, strikes;
    Py_ssize_t most; /* elements that NumPy is to work on here; 0 for none */
} Place;

static Place Places[PLACES];
static int Suspended;    /* how often `suspend` was called, less `resume` */
static Py_ssize_t Alone; /* where a store has the place that made it at once, or None */

static Place *
place_of(PyObject *code, int instruction)
{
    return Places + (((uintptr_t)code >> 5) * 31 + (uintptr_t)instruction / 2) % PLACES;
}

/* The place where the user's code is, if anything was learned there.  Where functions of ours or NumPy's that are
 * written in Python are between, there is nothing to be found. */
static Place *
here(void)
{
    PyFrameObject *frame = PyEval_GetFrame();
    PyCodeObject *code;
    Place *place;
    int instruction;
    if (frame == NULL || Suspended)
        return NULL;
    code = PyFrame_GetCode(frame);
    instruction = PyFrame_GetLasti(frame);
    place = place_of((PyObject *)code, instruction);
    Py_DECREF(code); /* the frame holds it */
    return place->code == (PyObject *)code && place->instruction == instruction && place->most ? place : NULL;
}

/* May NumPy work on so many elements here?  -1 with an exception. */
static int
alone_here(Py_ssize_t elements)
{
    Place *place = here();
    PyObject *answer;
    int allowed;
    if (place == NULL || elements > place->most)
        return 0;
    answer = PyObject_CallNoArgs(Allowed);
    allowed = answer == NULL ? -1 : PyObject_IsTrue(answer);
    Py_XDECREF(answer);
    return allowed;
}

/* The plain view of a large array on which nothing is pending, or NULL, without an exception; borrowed. */
static PyObject *
view_of(PyObject *x)
{
    PyObject *store = AT(x, Store), *view = AT(x, View), *made;
    if (view != NULL && Py_TYPE(view) == Plain)
        return clean(x) ? view : NULL;
    if (store == NULL || AT(store, Mem) == Py_None || !clean(x))
        return NULL;
    made = PyObject_CallMethod(x, "_look", NULL);
    PyErr_Clear(); /* the slow way says it again */
    Py_XDECREF(made);
    view = AT(x, View);
    return made != NULL && view != NULL && Py_TYPE(view) == Plain ? view : NULL;
}

/* That view, if NumPy is to work on it where the user's code is. */
static PyObject *
alone(PyObject *x)
{
    PyObject *view;
    int found;
    if (AT(x, Small) != Py_None || !clean(x) || here() == NULL)
        return NULL;
    if (PyUnicode_GET_LENGTH(AT(AT(x, Store), Char)) == 0) /* kernels do not work on it, and the report says so */
        return NULL;
    view = view_of(x);
    found = view == NULL ? 0 : alone_here(elements_of(view));
    if (found < 0)
        PyErr_Clear();
    return found > 0 ? view : NULL;
}

/* Note who made what a large array holds; nothing is lost where that fails. */
static void
note_place(PyObject *x)
{
    Place *place;
    PyObject *store, *note;
    if (!is_large(x) || (place = here()) == NULL)
        return;
    store = AT(x, Store);
    note = Py_BuildValue("Oi", place->code, place->instruction);
    if (note == NULL)
        PyErr_Clear();
    else
        Py_XSETREF(AT(store, Alone), note);
}

/* learn(code, instruction, elements) */
static PyObject *
learn_place(PyObject *module, PyObject *args)
{
    PyObject *code;
    Py_ssize_t elements;
    int instruction;
    Place *place;
    if (!PyArg_ParseTuple(args, "O!in", &PyCode_Type, &code, &instruction, &elements))
        return NULL;
    place = place_of(code, instruction);
    if (place->code != code || place->instruction != instruction) {
        Place fresh = {Py_NewRef(code), instruction, 0, 0};
        PyObject *old = place->code;
        *place = fresh;
        Py_XDECREF(old);
    }
    if (place->strikes < STRIKES && place->most < elements)
        place->most = elements;
    Py_RETURN_NONE;
}

/* strike(code, instruction) */
static PyObject *
strike_place(PyObject *module, PyObject *args)
{
    PyObject *code;
    int instruction;
    Place *place;
    if (!PyArg_ParseTuple(args, "O!i", &PyCode_Type, &code, &instruction))
        return NULL;
    place = place_of(code, instruction);
    if (place->code == code && place->instruction == instruction) {
        place->strikes++;
        place->most = 0;
    }
    Py_RETURN_NONE;
}

/* suspend(more): 1 or -1 */
static PyObject *
suspend_places(PyObject *module, PyObject *more)
{
    long change = PyLong_AsLong(more);
    if (change == -1 && PyErr_Occurred())
        return NULL;
    Suspended += (int)change;
    Py_RETURN_NONE;
}
