/* Routes: callables that stand for dcarray's functions and methods, and call NumPy's on small arrays without a step in Python. */

/* What NumPy does on plain arrays, or the `slow` function, which says what it means.  Without a function of
 * NumPy's, the first argument is an object that holds one at `place`. */
typedef struct {
    PyObject_HEAD
    vectorcallfunc call;
    PyObject *numpy, *slow;
    Py_ssize_t place;
    int looks, makes; /* of large arrays; small ones of numbers, or -1 */
    int answer;       /* of constants.h */
} Route;

/* A draw of numbers, which no array says how; it may decline. */
static PyObject *
draw_numbers(PyObject *function, PyObject *const *args, Py_ssize_t nargs, PyObject *names)
{
    PyObject *all[FEW], *r, *x;
    Py_ssize_t n = nargs + (names == NULL ? 0 : PyTuple_GET_SIZE(names));
    if (nargs < 1 || n > FEW || !MayView || simulated())
        return NULL;
    for (Py_ssize_t k = 1; k < n; k++) {
        all[k] = args[k];
        if (!is_leaf(args[k]) && !is_numpy_scalar(args[k]) && (!PyTuple_CheckExact(args[k]) || numbers_in(args[k], 0) < 0))
            return NULL;
    }
    all[0] = PyObject_GetAttr(args[0], PlainName);
    r = all[0] == NULL ? NULL : PyObject_Vectorcall(function, all, nargs, names);
    Py_XDECREF(all[0]);
    if (r == NULL)
        return NULL;
    x = wrap_value(NULL, r);
    Py_DECREF(r);
    return x;
}

static PyObject *
call_route(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *names)
{
    Route *s = (Route *)self;
    Py_ssize_t nargs = PyVectorcall_NARGS(nargsf);
    PyObject *r = NULL;
    if (s->answer && names == NULL && nargs > 0) {
        r = answer_of(s->answer, args, nargs);
        if (r != NULL || PyErr_Occurred())
            return r;
    }
    if (s->makes >= DRAWN)
        r = made_on_device() ? NULL : draw_numbers(s->numpy, args, nargs, names);
    else if (s->makes >= 0)
        r = make_small(s->numpy, s->makes, args, nargs, names);
    else if (s->numpy == NULL) {
        if (nargs > 1 && AT(args[0], s->place) != NULL)
            r = call_plain(AT(args[0], s->place), args + 1, nargs - 1, names, NOTHING, 0);
    }
    else {
        int first = s->looks != NOTHING && nargs > 0 && is_large(args[0]);
        r = call_plain(s->numpy, args, nargs, names, first ? s->looks : NOTHING, 0);
        if (r == NULL && s->looks != NOTHING && !PyErr_Occurred())
            r = call_plain(s->numpy, args, nargs, names, first ? NOTHING : s->looks, 0);
    }
    if (r != NULL || PyErr_Occurred())
        return r;
    return PyObject_Vectorcall(s->slow, args, nargsf, names);
}

static PyObject *
bind_route(PyObject *self, PyObject *x, PyObject *cls)
{
    return x == NULL || x == Py_None ? Py_NewRef(self) : PyMethod_New(self, x);
}

static PyObject *
attribute_of_route(PyObject *self, PyObject *name)
{
    PyObject *value = PyObject_GenericGetAttr(self, name);
    if (value != NULL || !PyErr_ExceptionMatches(PyExc_AttributeError))
        return value;
    PyErr_Clear();
    return PyObject_GetAttr(((Route *)self)->slow, name);
}

static PyObject *
text_of_route(PyObject *self)
{
    return PyObject_Repr(((Route *)self)->slow);
}

static void
free_route(PyObject *self)
{
    Py_XDECREF(((Route *)self)->numpy);
    Py_XDECREF(((Route *)self)->slow);
    PyObject_Free(self);
}

static PyMemberDef members_of_route[] = {
    {"__wrapped__", T_OBJECT, offsetof(Route, slow), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

/* A type has a text of its own, or none, which an instance would give. */
static PyObject *
doc_of_route(PyObject *self, void *ignored)
{
    return PyObject_GetAttrString(((Route *)self)->slow, "__doc__");
}

static PyGetSetDef computed_of_route[] = {
    {"__doc__", doc_of_route, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

/* What both types have. */
#define SLOTS_OF_ROUTE                                                                               \
    .tp_basicsize = sizeof(Route), .tp_vectorcall_offset = offsetof(Route, call),                    \
    .tp_call = PyVectorcall_Call, .tp_getattro = attribute_of_route, .tp_repr = text_of_route,       \
    .tp_dealloc = free_route, .tp_members = members_of_route, .tp_getset = computed_of_route

static PyTypeObject RouteType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "dcarray._native.extension.method",
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR,
    .tp_descr_get = bind_route,
    SLOTS_OF_ROUTE,
};

/* A route that does not become a method as an attribute of a class. */
static PyTypeObject CreationRouteType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "dcarray._native.extension.function",
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL,
    SLOTS_OF_ROUTE,
};

static PyObject *
new_route(PyObject *numpy, PyObject *slow, int looks, int makes)
{
    Route *route = PyObject_New(Route, makes < 0 || makes == SQUARE || makes >= DRAWN ? &RouteType : &CreationRouteType);
    if (route == NULL)
        return NULL;
    route->call = call_route;
    route->numpy = Py_XNewRef(numpy);
    route->place = 0;
    route->looks = looks;
    route->makes = makes;
    route->answer = UNANSWERED;
    route->slow = Py_NewRef(slow);
    return (PyObject *)route;
}

/* make_route(function, slow): a callable that calls NumPy's function on small arrays, if there is a route for it, and
 * `slow` for all others; `slow` itself without one. */
static PyObject *
make_route(PyObject *module, PyObject *args)
{
    PyObject *numpy, *slow, *function, *route;
    int at;
    if (!PyArg_ParseTuple(args, "OO", &numpy, &slow))
        return NULL;
    function = Served == NULL ? NULL : PyDict_GetItemWithError(Served, numpy);
    if (function == NULL)
        return PyErr_Occurred() ? NULL : Py_NewRef(slow);
    route = new_route(function, slow, access_of(numpy), -1);
    at = answer_slot(numpy);
    if (route != NULL && Answered[at].function == numpy)
        ((Route *)route)->answer = Answered[at].answer;
    return route;
}

/* make_creation_route(function, slow, kind): likewise for a function that makes arrays from numbers, of a kind of MAKERS. */
static PyObject *
make_creation_route(PyObject *module, PyObject *args)
{
    PyObject *numpy, *slow;
    int kind;
    if (!PyArg_ParseTuple(args, "OOi", &numpy, &slow, &kind))
        return NULL;
    if (Wrapped == NULL || kind < 0 || kind > DRAWN || (kind >= DRAWN && (Served == NULL || Adopt == NULL)))
        return Py_NewRef(slow);
    return PyType_Ready(&RouteType) < 0 || PyType_Ready(&CreationRouteType) < 0 ? NULL : new_route(numpy, slow, NOTHING, kind);
}

/* route_instances(cls, name, method): calls of instances of `cls`, which hold their function of NumPy's in a slot, or of
 * this method of theirs */
static PyObject *
route_instances(PyObject *module, PyObject *args)
{
    PyObject *cls, *slow, *route;
    const char *name, *method = "__call__";
    Py_ssize_t place;
    int done;
    if (!PyArg_ParseTuple(args, "O!s|s", &PyType_Type, &cls, &name, &method))
        return NULL;
    if (Served == NULL)
        Py_RETURN_NONE;
    slow = PyObject_GetAttrString(cls, method);
    route = slow == NULL || find_slot(cls, name, &place) ? NULL : new_route(NULL, slow, NOTHING, -1);
    Py_XDECREF(slow);
    if (route == NULL)
        return NULL;
    ((Route *)route)->place = place;
    done = PyObject_SetAttrString(cls, method, route);
    Py_DECREF(route);
    if (done < 0)
        return NULL;
    Py_RETURN_NONE;
}

/* Put the short way of these methods into the class. */
static int
route_methods(PyObject *names)
{
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(names); k++) {
        PyObject *name = PyTuple_GET_ITEM(names, k), *method = NULL;
        PyObject *numpy = PyObject_GetAttr((PyObject *)PlainClass, name), *slow = PyObject_GetAttr((PyObject *)Wrapped, name);
        int done = numpy == NULL || slow == NULL || (method = new_route(numpy, slow, access_of(name), -1)) == NULL;
        if (!done)
            done = PyObject_SetAttr((PyObject *)Wrapped, name, method) < 0;
        Py_XDECREF(numpy);
        Py_XDECREF(slow);
        Py_XDECREF(method);
        if (done)
            return -1;
    }
    return 0;
}

/* set_routes(functions, methods, questions, views, answered, rest): which of NumPy's functions have routes, with what is behind
 * their dispatch, and which methods by name; those that only look at shapes and dtypes, and those that give views; and
 * those whose results are known here; `rest` wraps results that are not of the usual kinds. */
static PyObject *
set_routes(PyObject *module, PyObject *args)
{
    PyObject *functions, *names, *questions, *views, *answers, *rest;
    if (!PyArg_ParseTuple(args, "O!O!O!O!O!O", &PyDict_Type, &functions, &PyTuple_Type, &names, &PyFrozenSet_Type,
                          &questions, &PyDict_Type, &views, &PyTuple_Type, &answers, &rest))
        return NULL;
    if (Wrapped == NULL || Served != NULL)
        Py_RETURN_FALSE;
    if (set_answers(answers) < 0)
        return NULL;
    WrapRest = Py_NewRef(rest);
    ShapeReaders = Py_NewRef(questions);
    ViewMakers = Py_NewRef(views);
    MayView = PyDict_GET_SIZE(views) > 0;
    if (PyType_Ready(&RouteType) < 0 || route_methods(names) < 0 || replace_method(Wrapped, &function_def, &Function) ||
        (DotMethod = PyObject_GetAttrString((PyObject *)PlainClass, "dot")) == NULL)
        return NULL;
    Served = Py_NewRef(functions);
    Dot = PyDict_GetItemWithError(functions, PyTuple_GET_ITEM(answers, DOT - 1));
    Py_RETURN_TRUE;
}
