package gate_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"hekla.sh/hekla/internal/answers/gate"
	"hekla.sh/hekla/internal/keypair"
)

// apiServer is a client of a server that knows one token, lets its user see jobs, and has one ConfigMap.
func apiServer(configuration map[string]string) (client kubernetes.Interface, closeServer func()) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		reply := func(object any) {
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(object)
		}
		switch what := path.Base(r.URL.Path); {
		case what == "tokenreviews":
			var review authenticationv1.TokenReview
			_ = json.NewDecoder(r.Body).Decode(&review)
			if review.Spec.Token == "ann-s" {
				review.Status = authenticationv1.TokenReviewStatus{Authenticated: true, User: authenticationv1.UserInfo{Username: "ann"}}
			}
			reply(review)
		case what == "subjectaccessreviews":
			var review authorizationv1.SubjectAccessReview
			_ = json.NewDecoder(r.Body).Decode(&review)
			of := review.Spec.ResourceAttributes
			if of.Resource == "unknown" {
				http.Error(w, "cannot be asked", http.StatusForbidden)
				return
			}
			review.Status.Allowed = review.Spec.User == "ann" && of.Verb == "get" && of.Resource == "jobs" && of.Namespace == "team"
			reply(review)
		case what != "configmaps" || r.URL.Query().Has("sendInitialEvents"):
			http.Error(w, "not served", http.StatusUnprocessableEntity)
		case r.URL.Query().Has("watch"):
			w.WriteHeader(http.StatusOK)
			<-r.Context().Done()
		default:
			reply(corev1.ConfigMapList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMapList"}, ListMeta: metav1.ListMeta{ResourceVersion: "1"}, Items: []corev1.ConfigMap{{
				ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "extension-apiserver-authentication"}, Data: configuration}}})
		}
	}))
	return kubernetes.NewForConfigOrDie(&rest.Config{Host: server.URL}), server.Close
}

// A user with a token asks about a job.
func ExampleGate() {
	client, closeServer := apiServer(nil)
	defer closeServer()
	g, err := gate.New(client)
	if err != nil {
		fmt.Println(err)
		return
	}
	request := httptest.NewRequest("GET", "/", nil)
	request.Header.Set("Authorization", "Bearer ann-s")
	who, ok, err := g.User(request)
	if err != nil || !ok {
		fmt.Println(ok, err)
		return
	}
	may, err := g.May(context.Background(), who, gate.Access{Verb: "get", Group: "answers.hekla.sh", Resource: "jobs", Namespace: "team", Name: "train"})
	fmt.Println(who.GetName(), may, err)
	// Output: ann true <nil>
}

func TestOnlyWhatTheAPIServerPermitsIsAllowed(t *testing.T) {
	client, closeServer := apiServer(nil)
	defer closeServer()
	g, err := gate.New(client)
	if err != nil {
		t.Fatal(err)
	}
	ann := &user.DefaultInfo{Name: "ann"}
	for name, c := range map[string]struct {
		who       user.Info
		what      gate.Access
		may, fail bool
	}{
		"what is permitted":             {ann, gate.Access{Verb: "get", Resource: "jobs", Namespace: "team"}, true, false},
		"another user":                  {&user.DefaultInfo{Name: "bob"}, gate.Access{Verb: "get", Resource: "jobs", Namespace: "team"}, false, false},
		"another verb":                  {ann, gate.Access{Verb: "create", Resource: "jobs", Namespace: "team"}, false, false},
		"another resource":              {ann, gate.Access{Verb: "get", Resource: "pods", Namespace: "team"}, false, false},
		"another namespace":             {ann, gate.Access{Verb: "get", Resource: "jobs", Namespace: "other"}, false, false},
		"all namespaces":                {ann, gate.Access{Verb: "get", Resource: "jobs"}, false, false},
		"if the server cannot be asked": {ann, gate.Access{Verb: "get", Resource: "unknown", Namespace: "team"}, false, true},
	} {
		if may, err := g.May(t.Context(), c.who, c.what); may != c.may || err != nil != c.fail {
			t.Errorf("%s: %v, %v", name, may, err)
		}
	}
}

// authority returns a pair that signs.
func authority(t *testing.T, name string) keypair.Pair {
	t.Helper()
	pair, err := keypair.Issue(time.Now(), time.Hour, &x509.Certificate{Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign}, keypair.Pair{})
	if err != nil {
		t.Fatal(err)
	}
	return pair
}

func TestHeadersCountOnlyWithTheAPIServersOwnCertificate(t *testing.T) {
	ours, theirs := authority(t, "ours"), authority(t, "theirs")
	pem, _, err := ours.PEM()
	if err != nil {
		t.Fatal(err)
	}
	client, closeServer := apiServer(map[string]string{
		"requestheader-client-ca-file": string(pem), "requestheader-allowed-names": `["front-proxy"]`, "requestheader-username-headers": `["X-Remote-User"]`,
		"requestheader-uid-headers": `["X-Remote-Uid"]`, "requestheader-group-headers": `["X-Remote-Group"]`, "requestheader-extra-headers-prefix": `["X-Remote-Extra-"]`,
	})
	defer closeServer()
	g, err := gate.New(client)
	if err != nil {
		t.Fatal(err)
	}
	// request comes with a certificate for a name, or with none.
	request := func(signer keypair.Pair, name string) *http.Request {
		r := httptest.NewRequest("GET", "https://localhost/", nil)
		r.Header.Set("X-Remote-User", "bob")
		r.Header.Set("X-Remote-Group", "batch")
		r.TLS = &tls.ConnectionState{}
		if name != "" {
			pair, err := keypair.Issue(time.Now(), time.Hour, &x509.Certificate{Subject: pkix.Name{CommonName: name}, KeyUsage: x509.KeyUsageDigitalSignature,
				ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}, signer)
			if err != nil {
				t.Fatal(err)
			}
			certificate, err := x509.ParseCertificate(pair.TLS().Certificate[0])
			if err != nil {
				t.Fatal(err)
			}
			r.TLS.PeerCertificates = []*x509.Certificate{certificate}
		}
		return r
	}
	if _, ok, _ := g.User(request(ours, "front-proxy")); ok {
		t.Error("headers count before the gate knows the authority")
	}
	ctx, cancel := context.WithCancel(t.Context())
	hasEnded := make(chan struct{})
	go func() {
		defer close(hasEnded)
		g.Run(ctx)
	}()
	defer func() {
		cancel()
		<-hasEnded
	}()
	for ok := false; !ok; time.Sleep(10 * time.Millisecond) { // until the ConfigMap is read
		var who user.Info
		if who, ok, _ = g.User(request(ours, "front-proxy")); ok && (who.GetName() != "bob" || len(who.GetGroups()) == 0 || who.GetGroups()[0] != "batch") {
			t.Errorf("the user is %+v", who)
		}
	}
	eve := request(ours, "")
	eve.Header = http.Header{"Authorization": {"Bearer eve-s"}}
	for name, r := range map[string]*http.Request{
		"no certificate":             request(ours, ""),
		"that of another authority":  request(theirs, "front-proxy"),
		"a name that is not allowed": request(ours, "kubelet"),
		"a token that is none":       eve,
	} {
		if who, ok, _ := g.User(r); ok {
			t.Errorf("with %s the user is %+v", name, who)
		}
	}
}
