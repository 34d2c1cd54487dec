/* The slots of a handle that are filled when somebody asks.  In Python `__getattr__` does it; a class that has one
 * pays for it with every attribute, and with a bound method in every call of one. */

static PyObject *
get_store(PyObject *x, void *closure)
{
    return Py_XNewRef(store_of(x));
}

static PyObject *
get_index(PyObject *x, void *closure)
{
    PyObject *origin = AT(x, Origin);
    if (AT(x, Index) != NULL)
        return Py_NewRef(AT(x, Index));
    if (origin != NULL && (PyTuple_CheckExact(origin) || viewed_store(x) != NULL))
        return PyObject_CallMethod(x, "__getattr__", "O", IndexName);
    PyErr_SetObject(PyExc_AttributeError, IndexName);
    return NULL;
}

static int
set_slot(PyObject *x, PyObject *value, void *place)
{
    Py_XSETREF(AT(x, *(Py_ssize_t *)place), Py_XNewRef(value));
    return 0;
}

static PyGetSetDef filled[] = {{"_store", get_store, set_slot, NULL, &Store},
                               {"_index", get_index, set_slot, NULL, &Index},
                               {NULL}};

/* Let handles live as in handles.h, and look for their attributes so: -1 with an exception. */
static int
install_lifecycle(void)
{
    size_t slots = 0;
    for (PyTypeObject *type = Wrapped; type != NULL; type = type->tp_base)
        for (PyMemberDef *member = type->tp_members; member != NULL && member->name != NULL; member++)
            slots++;
    if (slots != sizeof(HandleSlots) / sizeof(HandleSlots[0]) || Wrapped->tp_dictoffset || Wrapped->tp_finalize || Wrapped->tp_del) {
        PyErr_SetString(PyExc_TypeError, "handles have other slots than are known here");
        return -1;
    }
    for (PyGetSetDef *one = filled; one->name != NULL; one++) {
        PyObject *descriptor = PyDescr_NewGetSet(Wrapped, one);
        int done = descriptor == NULL ? -1 : PyObject_SetAttrString((PyObject *)Wrapped, one->name, descriptor);
        Py_XDECREF(descriptor);
        if (done < 0)
            return -1;
    }
    Wrapped->tp_getattro = PyObject_GenericGetAttr;
    Wrapped->tp_dealloc = drop_handle;
    return 0;
}
