package jobplugins

import (
	"bytes"
	"errors"
	"net"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
)

// secretOf returns the Secret of a Job that uses ssh with the arguments.
func secretOf(t *testing.T, arguments ...string) *corev1.Secret {
	t.Helper()
	job := &batch.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "sim"}}
	job.Spec.Plugins = map[string][]string{"ssh": arguments}
	set, problems := New(job, podName)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	resource := set.Resources()[0]
	if err := resource.Update(resource.Object); err != nil {
		t.Fatal(err)
	}
	return resource.Object.(*corev1.Secret)
}

// logIn plays sshd and ssh with the files of one Secret, over a pipe.
func logIn(t *testing.T, secret *corev1.Secret) error {
	t.Helper()
	signer, err := ssh.ParsePrivateKey(secret.Data[privateKeyFile])
	if err != nil {
		t.Fatal(err)
	}
	authorized, _, _, _, err := ssh.ParseAuthorizedKey(secret.Data[authorizedKeysFile])
	if err != nil {
		t.Fatal(err)
	}
	server := &ssh.ServerConfig{PublicKeyCallback: func(_ ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
		if !bytes.Equal(key.Marshal(), authorized.Marshal()) {
			return nil, errors.New("not an authorized key")
		}
		return &ssh.Permissions{}, nil
	}}
	server.AddHostKey(signer)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	done := make(chan error, 1)
	go func() {
		there, err := listener.Accept()
		if err == nil {
			defer func() { _ = there.Close() }()
			_, _, _, err = ssh.NewServerConn(there, server)
		}
		done <- err
	}()
	here, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = here.Close() }()
	_, _, _, err = ssh.NewClientConn(here, "sim-worker-0", &ssh.ClientConfig{
		User: "root", Auth: []ssh.AuthMethod{ssh.PublicKeys(signer)}, HostKeyCallback: ssh.FixedHostKey(signer.PublicKey()),
	})
	return errors.Join(err, <-done)
}

func TestPodsLogInToEachOtherWithTheNewKeys(t *testing.T) {
	secret := secretOf(t)
	if err := logIn(t, secret); err != nil {
		t.Error(err)
	}
	if !strings.HasPrefix(string(secret.Data[publicKeyFile]), "ssh-ed25519 ") {
		t.Errorf("the public key is %q", secret.Data[publicKeyFile])
	}
	if bytes.Equal(secret.Data[privateKeyFile], secretOf(t).Data[privateKeyFile]) {
		t.Error("two Jobs have one key")
	}
}

func TestTheUsersOwnKeysAreUsedAndThePublicOneIsWorkedOut(t *testing.T) {
	mine := secretOf(t)
	private, public := string(mine.Data[privateKeyFile]), string(mine.Data[publicKeyFile])
	for _, arguments := range [][]string{
		{"--ssh-private-key=" + private},
		{"--ssh-private-key", private, "--ssh-public-key", public},
	} {
		secret := secretOf(t, arguments...)
		if string(secret.Data[privateKeyFile]) != private || string(secret.Data[authorizedKeysFile]) != public {
			t.Errorf("with %d arguments the keys are %q", len(arguments), secret.Data)
		}
		if err := logIn(t, secret); err != nil {
			t.Error(err)
		}
	}
}

func TestKeysStayWhenHostsAreAdded(t *testing.T) {
	job := &batch.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "sim"}}
	job.Spec.Plugins = map[string][]string{"ssh": nil}
	job.Spec.Tasks = []batch.TaskSpec{{Name: "worker", Replicas: 1}}
	secret := &corev1.Secret{}
	var keys []string
	for replicas := range int32(3) {
		job.Spec.Tasks[0].Replicas = replicas
		set, _ := New(job, podName)
		if err := set.Resources()[0].Update(secret); err != nil {
			t.Fatal(err)
		}
		keys = append(keys, string(secret.Data[privateKeyFile]))
		if got := strings.Count(string(secret.Data[configFile]), "Host "); got != int(replicas) {
			t.Errorf("%d hosts for %d replicas", got, replicas)
		}
	}
	if keys[0] != keys[1] || keys[1] != keys[2] {
		t.Error("growing changed the keys")
	}
}
