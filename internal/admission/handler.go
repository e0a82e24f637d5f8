package admission

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"

	"gomodules.xyz/jsonpatch/v2"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"hekla.sh/hekla/pkg/apis/bounds"
)

// change is what a client asks the API server for: before is nil on creation, after on deletion.
type change[T client.Object] struct {
	operation     admissionv1.Operation
	before, after T
}

// ruling is what is said to it. Problems refuse it; warnings are shown to the user.
type ruling struct {
	problems field.ErrorList
	warnings []string
}

// refuse adds a problem.
func (r *ruling) refuse(problems ...*field.Error) { r.problems = append(r.problems, problems...) }

// handler answers one request. Its answer is right for what readers show it.
type handler func(ctx context.Context, s *server, request admission.Request) (admission.Response, error)

// validates makes a handler from the rules for one kind. The rules are asked with the cache first. Caches lag: before
// anything is refused they are asked again with what the API server itself says.
func validates[T client.Object](kind schema.GroupKind, rules func(context.Context, *server, client.Reader, change[T]) (ruling, error)) handler {
	return func(ctx context.Context, s *server, request admission.Request) (admission.Response, error) {
		asked, err := decode[T](s.scheme, request)
		if err != nil {
			return admission.Response{}, err
		}
		said, err := rules(ctx, s, s.cached, asked)
		if err != nil || len(said.problems) > 0 {
			said, err = rules(ctx, s, s.live, asked)
		}
		if err != nil {
			return admission.Response{}, err
		}
		if len(said.problems) == 0 {
			return admission.Allowed("").WithWarnings(said.warnings...), nil
		}
		return invalid(kind, nameOf(request, asked), said.problems), nil
	}
}

// alone makes rules from a function that says what is wrong with an object by itself: what a controller of the kind
// asks as well. Of an update only what was not wrong before is told.
func alone[T client.Object](problemsOf func(T, *settings) field.ErrorList) func(context.Context, *server, client.Reader, change[T]) (ruling, error) {
	return func(_ context.Context, s *server, _ client.Reader, asked change[T]) (ruling, error) {
		problems := problemsOf(asked.after, s.settings.Load())
		if len(problems) == 0 || asked.operation != admissionv1.Update {
			return ruling{problems: problems}, nil
		}
		before := sets.New[string]()
		for _, problem := range problemsOf(asked.before, s.settings.Load()) {
			before.Insert(problem.Error())
		}
		return ruling{problems: slices.DeleteFunc(problems, func(p *field.Error) bool { return before.Has(p.Error()) })}, nil
	}
}

// invalid refuses an object for its problems.
func invalid(kind schema.GroupKind, name string, problems field.ErrorList) admission.Response {
	status := apierrors.NewInvalid(kind, name, bounds.Told(problems)).Status()
	return admission.Response{AdmissionResponse: admissionv1.AdmissionResponse{Allowed: false, Result: &status}}
}

// refused is what a function that edits returns to have the object refused. Most is for the rules that come after it.
type refused field.ErrorList

func (r refused) Error() string { return bounds.Told(field.ErrorList(r)).ToAggregate().Error() }

// refuse makes an error that has an object refused for its problems, nil if it has none.
func refuse(problems field.ErrorList) error {
	if len(problems) == 0 {
		return nil
	}
	return refused(problems)
}

// mutates makes a handler from a function that edits the object that is asked for. Only what it edits is in the answer:
// fields that this program does not know stay as they are.
func mutates[T client.Object](edit func(context.Context, *server, change[T]) error) handler {
	return func(ctx context.Context, s *server, request admission.Request) (admission.Response, error) {
		asked, err := decode[T](s.scheme, request)
		if err != nil {
			return admission.Response{}, err
		}
		before, err := json.Marshal(asked.after)
		if err != nil {
			return admission.Response{}, err
		}
		err = edit(ctx, s, asked)
		if refused, is := errors.AsType[refused](err); is {
			kind := schema.GroupKind{Group: request.Kind.Group, Kind: request.Kind.Kind}
			return invalid(kind, nameOf(request, asked), field.ErrorList(refused)), nil
		}
		if err != nil {
			return admission.Response{}, err
		}
		after, err := json.Marshal(asked.after)
		if err != nil {
			return admission.Response{}, err
		}
		operations, err := jsonpatch.CreatePatch(before, after)
		if err != nil {
			return admission.Response{}, err
		}
		slices.SortStableFunc(operations, func(a, b jsonpatch.Operation) int { return comparePaths(a.Path, b.Path) })
		return admission.Patched("", withSpec(request.Object.Raw, operations)...), nil
	}
}

// comparePaths puts what is above before what is below it, and items of a list in their order.
func comparePaths(a, b string) int {
	return slices.CompareFunc(strings.Split(a, "/"), strings.Split(b, "/"), func(a, b string) int {
		x, err := strconv.Atoi(a)
		y, err2 := strconv.Atoi(b)
		if err == nil && err2 == nil {
			return cmp.Compare(x, y)
		}
		return cmp.Compare(a, b)
	})
}

// withSpec adds the spec to an object that has none before something is put into it.
func withSpec(raw []byte, operations []jsonpatch.Operation) []jsonpatch.Operation {
	var parts map[string]json.RawMessage
	if err := bounds.UnmarshalJSON(raw, &parts); err == nil && len(parts["spec"]) == 0 &&
		slices.ContainsFunc(operations, func(o jsonpatch.Operation) bool { return strings.HasPrefix(o.Path, "/spec/") }) {
		return slices.Insert(operations, 0, jsonpatch.NewOperation("add", "/spec", map[string]any{}))
	}
	return operations
}

// unreadable is what is wrong with an object that cannot be decoded: it is refused, by a webhook whose failures are
// ignored, too.
type unreadable struct{ why string }

func (u unreadable) Error() string { return "the object cannot be read: " + u.why }

// errStaysUnreadable is for an object that could not be decoded before, either. Those that delete it step by step are
// let through.
var errStaysUnreadable = errors.New("the object cannot be read, before the change and after it")

// decode reads the objects of a request. An object that is missing where the operation has one is an error. One that
// follows on one that cannot be read is judged as if it were new.
func decode[T client.Object](scheme *runtime.Scheme, request admission.Request) (change[T], error) {
	asked := change[T]{operation: request.Operation}
	if request.Operation != admissionv1.Create {
		var err error
		if asked.before, err = read[T](scheme, request, request.OldObject); err != nil {
			return asked, err
		}
	}
	if request.Operation == admissionv1.Delete {
		return asked, nil
	}
	var err error
	if asked.after, err = read[T](scheme, request, request.Object); err != nil {
		return asked, err
	}
	why, is := bounds.Unreadable(asked.after)
	wasUnreadable := false
	if asked.operation == admissionv1.Update {
		_, wasUnreadable = bounds.Unreadable(asked.before)
	}
	switch {
	case is && wasUnreadable:
		return asked, errStaysUnreadable
	case is:
		return asked, unreadable{why}
	case wasUnreadable:
		asked = change[T]{operation: admissionv1.Create, after: asked.after}
	}
	return asked, nil
}

// read decodes one object. Its quantities are checked first, also for kinds that do not do so themselves. Any client
// that reaches the server can send it anything.
func read[T client.Object](scheme *runtime.Scheme, request admission.Request, raw runtime.RawExtension) (T, error) {
	var none T
	if len(raw.Raw) == 0 {
		return none, errors.New("the request has no object")
	}
	object := reflect.New(reflect.TypeFor[T]().Elem()).Interface().(T)
	if _, isChecked := any(object).(bounds.Strict); !isChecked {
		if err := bounds.CheckJSON(raw.Raw, reflect.TypeFor[T]()); err != nil {
			return none, unreadable{err.Error()}
		}
	}
	if err := admission.NewDecoder(scheme).DecodeRaw(raw, object); err != nil {
		return none, unreadable{err.Error()}
	}
	// An API server that makes up the name, or takes the namespace from the path, does so after admission.
	if object.GetNamespace() == "" {
		object.SetNamespace(request.Namespace)
	}
	return object, nil
}

// nameOf is what the object is called in messages. One whose name the API server makes up has none yet.
func nameOf[T client.Object](request admission.Request, asked change[T]) string {
	switch {
	case request.Name != "":
		return request.Name
	case asked.operation == admissionv1.Create && asked.after.GetName() == "":
		return asked.after.GetGenerateName()
	case asked.operation == admissionv1.Create:
		return asked.after.GetName()
	}
	return asked.before.GetName()
}

// answering puts a handler behind what controller-runtime's webhooks ask for. An error, or a bug, is not the user's
// fault: what the failure policy says for a server that is down holds for a server that is broken as well.
func (service *service) answering(s *server) admission.Handler {
	return admission.HandlerFunc(func(ctx context.Context, request admission.Request) (response admission.Response) {
		ctx, cancel := context.WithTimeout(ctx, handlerTimeout)
		defer cancel()
		defer func() {
			if bug := recover(); bug != nil {
				response = service.failed(ctx, request, fmt.Errorf("bug: %v", bug), string(debug.Stack()))
			}
		}()
		if !slices.Contains(service.operations, admissionregistrationv1.OperationType(request.Operation)) {
			return service.failed(ctx, request, fmt.Errorf("operation %q is not one of those that are asked about", request.Operation), "")
		}
		response, err := service.handle(ctx, s, request)
		var refused unreadable
		switch {
		case errors.Is(err, errStaysUnreadable):
			return admission.Allowed("").WithWarnings(err.Error())
		case errors.As(err, &refused):
			return admission.Errored(http.StatusUnprocessableEntity, refused)
		case err != nil:
			return service.failed(ctx, request, err, "")
		}
		service.code(&response)
		return response
	})
}

// code gives refusals about the kinds of Kueue, and about what is queued by them, the status that Kueue's have:
// forbidden. What their definitions refuse is invalid, there as well.
func (service *service) code(response *admission.Response) {
	if r := response.Result; r != nil && r.Reason == metav1.StatusReasonInvalid && strings.HasPrefix(service.path, "/kueue/") {
		r.Reason, r.Code = metav1.StatusReasonForbidden, http.StatusForbidden
	}
}

func (service *service) failed(ctx context.Context, request admission.Request, err error, stack string) admission.Response {
	logf.FromContext(ctx).Error(err, "Could not answer", "path", service.path, "operation", request.Operation, "stack", stack)
	if service.failurePolicy == admissionregistrationv1.Ignore {
		return admission.Allowed("").WithWarnings(fmt.Sprintf("hekla: %s was not asked: %v", service.path, err))
	}
	return admission.Errored(http.StatusInternalServerError, fmt.Errorf("%s could not answer: %w", service.path, err))
}

// stays is a refusal to delete an object.
func stays(format string, arguments ...any) *field.Error {
	return field.Forbidden(field.NewPath("metadata", "name"), fmt.Sprintf(format, arguments...))
}
