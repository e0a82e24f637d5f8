package session

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/tools/clientcmd"
)

func TestAnErrorSaysWhatToDoNext(t *testing.T) {
	s := New("hekla", false, genericiooptions.NewTestIOStreamsDiscard())
	s.namespaceFlag = "n"
	jobs, queues := schema.GroupResource{Group: "batch.volcano.sh", Resource: "jobs"}, schema.GroupResource{Group: "scheduling.volcano.sh", Resource: "queues"}
	refused := &net.OpError{Op: "dial", Err: errors.New("connection refused")}
	for _, test := range []struct {
		err  error
		want string
	}{
		{apierrors.NewNotFound(jobs, "j"), `there is no job "j" in namespace n; "hekla job list -n n" lists those there are`},
		{apierrors.NewNotFound(queues, "q"), `there is no queue "q"; "hekla queue list" lists those there are`},
		{apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "n"), `namespaces "n" not found`},
		{apierrors.NewAlreadyExists(jobs, "j"), "choose another name"},
		{apierrors.NewForbidden(jobs, "j", errors.New("no")), "ask an administrator"},
		{apierrors.NewUnauthorized("who"), "log in again"},
		{apierrors.NewBadRequest("unknown field"), "unknown field; correct it and try again"},
		{apierrors.NewResourceExpired("old"), "start the command again"},
		{&meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: "flow.volcano.sh", Kind: "JobFlow"}}, "does not know JobFlow of flow.volcano.sh"},
		{&meta.NoResourceMatchError{PartialResource: jobs.WithVersion("v1alpha1")}, "does not know jobs of batch.volcano.sh"},
		{clientcmd.ErrEmptyConfig, "set KUBECONFIG"},
		{&fs.PathError{Op: "open", Path: "/k", Err: os.ErrNotExist}, "/k"},
		{&url.Error{Op: "Get", URL: "u", Err: refused}, "--context, --kubeconfig, --master"},
		{&url.Error{Op: "Get", URL: "u", Err: &net.DNSError{Name: "h", IsNotFound: true}}, "cannot be reached"},
		{&url.Error{Op: "Get", URL: "u", Err: context.DeadlineExceeded}, "--request-timeout"},
		{&url.Error{Op: "Get", URL: "u", Err: context.Canceled}, "interrupted"},
		{errors.New("anything else"), "anything else"},
	} {
		got := s.Explain(fmt.Errorf("around: %w", test.err))
		if got == nil || !strings.Contains(got.Error(), test.want) {
			t.Errorf("%T is told as %q, want %q", test.err, got, test.want)
		}
		if !errors.Is(got, test.err) {
			t.Errorf("%T is lost", test.err)
		}
		if again := s.Explain(got); again.Error() != got.Error() {
			t.Errorf("explained twice it is %q", again)
		}
	}
	if s.Explain(nil) != nil {
		t.Error("nothing is an error")
	}
}
