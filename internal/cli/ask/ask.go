package ask

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"hekla.sh/hekla/internal/answers/api"
	"hekla.sh/hekla/internal/cli/session"
	"hekla.sh/hekla/internal/explain/mistakes"
	"hekla.sh/hekla/pkg/apis/bounds"
)

// NewCommands returns the verbs.
func NewCommands(s *session.Session) []*cobra.Command {
	return []*cobra.Command{newWhyCommand(s), newTryCommand(s), newDiagCommand(s), newSnapshotCommand(s), newReplayCommand(s)}
}

// asker asks questions of the scheduler that leads.
type asker struct {
	session *session.Session
	api     rest.Interface
	format  string // json, yaml or empty
}

// errNotServed says that the API server passes no questions on.
func (a *asker) notServed(err error) error {
	return &session.Explained{Sentence: fmt.Sprintf("the scheduler does not answer through this API server: %s; is it installed with answers.enabled, and does one lead? "+
		"See: kubectl get apiservice v1alpha1.answers.hekla.sh && kubectl -n volcano-system get lease volcano", session.Message(err)), Cause: err}
}

// checkFormat is an error if answers cannot be printed like this.
func (a *asker) checkFormat() error {
	if a.format != "" && a.format != "json" && a.format != "yaml" {
		return fmt.Errorf("--output=%s: it must be json or yaml; -o json | jq .answer has every field", a.format)
	}
	return nil
}

func newAsker(s *session.Session, format string) (*asker, error) {
	a := &asker{session: s, format: format}
	if err := a.checkFormat(); err != nil {
		return nil, err
	}
	config, err := s.RESTConfig()
	if err != nil {
		return nil, err
	}
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, s.Explain(err)
	}
	a.api = client.RESTClient()
	return a, nil
}

// answer is what a question brings: its text as JSON, and as a person reads it.
type answer struct {
	raw  []byte
	text func(w io.Writer)
	// gist changes when something has changed that is worth a further text.
	gist string
}

// asked asks a question whose answer is a T. write writes it for a person; the text is worth printing again when its
// gist has changed.
func asked[T any](ctx context.Context, a *asker, path string, gist func(*T) string, write func(io.Writer, *T)) (answer, error) {
	var reply api.Reply[T]
	raw, err := a.ask(ctx, path, nil, &reply)
	if err != nil {
		return answer{}, err
	}
	return answer{raw: raw, gist: gist(&reply.Answer), text: func(w io.Writer) { write(w, &reply.Answer) }}, nil
}

// whole is the gist of an answer that is worth printing again whatever has changed in it.
func whole[T any](of *T) string {
	text, _ := json.Marshal(of) // it was read from JSON
	return string(text)
}

// ask asks one question at a path with its parameters. A body makes it a POST. It returns the text of the answer, too.
func (a *asker) ask(ctx context.Context, path string, body, into any) ([]byte, error) {
	request := a.api.Get()
	if body != nil {
		encoded, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		request = a.api.Post().Body(encoded).SetHeader("Content-Type", "application/json")
	}
	text, err := request.RequestURI(path).SetHeader("Accept", "application/json").DoRaw(ctx)
	if err == nil {
		return text, bounds.UnmarshalJSON(text, into)
	}
	return nil, a.explain(path, text, err)
}

// explain says what an error of a question at a path means. text is what came with it.
func (a *asker) explain(path string, text []byte, err error) error {
	switch {
	case apierrors.IsServiceUnavailable(err):
		return a.notServed(err)
	case apierrors.IsNotFound(err) && groupOf(text) != api.GroupVersion.Group:
		return a.notServed(err) // it is the API server that does not know the group
	case apierrors.IsNotFound(err):
		return absent{message(text, err), schedulersOf(text)}
	case apierrors.IsForbidden(err):
		sentence := message(text, err)
		right := "the ClusterRole view has the right, for a RoleBinding in that namespace"
		if !strings.Contains(path, "/namespaces/") {
			right = "the ClusterRole volcano-ask-all has the right, for a ClusterRoleBinding"
		}
		return &session.Explained{Sentence: sentence + "; " + right, Cause: err}
	case apierrors.IsBadRequest(err), apierrors.IsTooManyRequests(err):
		return &session.Explained{Sentence: message(text, err), Cause: err}
	}
	return a.session.Explain(err)
}

// absent is the error if the scheduler does not know what it was asked about.
type absent struct {
	sentence string
	// schedulers are the names by which pods ask for the scheduler, if it has said them.
	schedulers []string
}

func (e absent) Error() string { return e.sentence }

func isAbsent(err error) bool { return errors.As(err, new(absent)) }

// schedulersOf are the names of the scheduler that an error has.
func schedulersOf(text []byte) (names []string) {
	var status metav1.Status
	if bounds.UnmarshalJSON(text, &status) != nil || status.Details == nil {
		return nil
	}
	for _, cause := range status.Details.Causes {
		if cause.Type == api.CauseScheduler {
			names = append(names, cause.Message)
		}
	}
	return names
}

// misnamed adds to the error about a pod or job which scheduler its schedulerName probably meant.
func misnamed(err error, named string) error {
	var unknown absent
	if !errors.As(err, &unknown) || slices.Contains(unknown.schedulers, named) || len(unknown.schedulers) == 0 {
		return err
	}
	there := fmt.Sprintf("its schedulerName is %s, and this scheduler places those of %s", cmp.Or(named, "empty"), strings.Join(unknown.schedulers, ", "))
	return fmt.Errorf("%w; %s", err, mistakes.Of(there, named, unknown.schedulers).Message)
}

// groupOf is the group that an error is about: that of the answers if the scheduler has answered.
func groupOf(text []byte) string {
	var status metav1.Status
	if bounds.UnmarshalJSON(text, &status) != nil || status.Details == nil {
		return ""
	}
	return status.Details.Group
}

// message is what the scheduler says of an error.
func message(text []byte, err error) string {
	var status struct {
		Message string `json:"message"`
	}
	if bounds.UnmarshalJSON(text, &status) == nil && status.Message != "" {
		return status.Message
	}
	return session.Message(err)
}

// separate writes what stands between two answers.
func (a *asker) separate() {
	switch a.format {
	case "":
		_, _ = io.WriteString(a.session.Out, "\n")
	case "yaml":
		_, _ = io.WriteString(a.session.Out, "---\n")
	}
}

// print prints an answer in the format that was asked for, or as text.
func (a *asker) print(answer []byte, text func(w io.Writer)) error {
	switch a.format {
	case "json":
		var indented any
		if err := bounds.UnmarshalJSON(answer, &indented); err != nil {
			return err
		}
		encoder := json.NewEncoder(a.session.Out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(indented)
	case "yaml":
		converted, err := yaml.JSONToYAML(answer)
		if err != nil {
			return err
		}
		_, err = a.session.Out.Write(converted)
		return err
	}
	var written strings.Builder
	text(&written)
	_, err := io.WriteString(a.session.Out, written.String())
	return err
}
