package simulation

import (
	"bytes"
	"net/http"

	"k8s.io/apimachinery/pkg/runtime"
	auditinternal "k8s.io/apiserver/pkg/apis/audit"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	apiaudit "k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/authentication/user"

	"hekla.sh/hekla/internal/audit"
)

// auditLog is the log of the API server in memory, in the form that hekla audit reads.
type auditLog struct{ lines bytes.Buffer }

// userHeader names who makes a request.
const userHeader = "X-Simulated-User"

// userOf returns who makes a request: all may do all.
func userOf(r *http.Request) user.Info {
	return &user.DefaultInfo{Name: r.Header.Get(userHeader), Groups: []string{user.SystemPrivilegedGroup, user.AllAuthenticated}}
}

// add logs what has been written.
func (l *auditLog) add(e *auditinternal.Event) {
	if e.Verb == "get" || e.Verb == "list" || e.Verb == "watch" || e.ObjectRef == nil || e.ObjectRef.Resource == "leases" || e.ObjectRef.Resource == "events" {
		return
	}
	line, err := runtime.Encode(apiaudit.Codecs.LegacyCodec(auditv1.SchemeGroupVersion), e)
	if err != nil {
		panic(err)
	}
	l.lines.Write(line)
}

// report is what package audit proves from the log.
func (l *auditLog) report() (*audit.Report, error) {
	auditor := audit.New(audit.Options{})
	if err := auditor.Read(bytes.NewReader(l.lines.Bytes())); err != nil {
		return nil, err
	}
	return auditor.End(), nil
}
