package jobplugins

import (
	"crypto/ed25519"
	"encoding/pem"
	"errors"
	"flag"
	"fmt"
	"path"
	"strings"

	"golang.org/x/crypto/ssh"
	corev1 "k8s.io/api/core/v1"

	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
)

// Files that ssh and sshd look for, which are the keys of the Secret too. The private key keeps the name id_rsa
// whatever its type: it is what images copy, and ssh goes by the content.
const (
	privateKeyFile     = "id_rsa"
	publicKeyFile      = "id_rsa.pub"
	authorizedKeysFile = "authorized_keys"
	configFile         = "config"
)

// keysFolder is the folder within the volume that holds the files.
const keysFolder = ".ssh"

// keysMode lets only the owner read the files; ssh refuses keys that others can read.
const keysMode int32 = 0o600

// secureShell lets the pods of a Job log in to each other without a password: a Secret with one pair of keys for all of
// them, mounted where ssh looks.
type secureShell struct {
	job                   jobView
	path                  string
	privateKey, publicKey string
	port                  int
}

func newSSH(job jobView, arguments []string) (Plugin, error) {
	s := &secureShell{job: job}
	err := job.parse(arguments, func(flags *flag.FlagSet) {
		flags.StringVar(&s.path, "ssh-key-file-path", "/root/.ssh", "")
		flags.StringVar(&s.privateKey, "ssh-private-key", "", "")
		flags.StringVar(&s.publicKey, "ssh-public-key", "", "")
		flags.IntVar(&s.port, "ssh-port", 22, "")
	})
	if err != nil {
		return nil, err
	}
	if !path.IsAbs(s.path) || strings.Contains(s.path, ":") {
		err = fmt.Errorf("--ssh-key-file-path is %q: must be an absolute path without a colon", s.path)
	}
	return s, errors.Join(err, portInRange("ssh-port", s.port), s.checkKeys(), canBeVolume(s.secretName()),
		// The lines of a host hold its name too, which is a part of its address.
		job.checkList("the configuration of ssh", maxObject/2, 20, job.all()...))
}

// checkKeys reads the keys that the user gives, and works out the public one if only the private one is given.
func (s *secureShell) checkKeys() error {
	if s.privateKey == "" {
		if s.publicKey != "" {
			return errors.New("--ssh-public-key is given without --ssh-private-key")
		}
		return nil
	}
	signer, err := ssh.ParsePrivateKey([]byte(s.privateKey))
	if err != nil {
		return fmt.Errorf("--ssh-private-key cannot be read: %w", err)
	}
	if s.publicKey == "" {
		s.publicKey = string(ssh.MarshalAuthorizedKey(signer.PublicKey()))
	}
	if _, _, _, _, err := ssh.ParseAuthorizedKey([]byte(s.publicKey)); err != nil {
		return fmt.Errorf("--ssh-public-key cannot be read: %w", err)
	}
	return nil
}

func (s *secureShell) secretName() string { return s.job.Name + "-ssh" }

// EditPod mounts the keys into every container.
func (s *secureShell) EditPod(pod *corev1.Pod, _ *batch.TaskSpec, _ int) {
	mode := keysMode
	var items []corev1.KeyToPath
	for _, file := range [...]string{privateKeyFile, publicKeyFile, authorizedKeysFile, configFile} {
		items = append(items, corev1.KeyToPath{Key: file, Path: keysFolder + "/" + file})
	}
	name := s.secretName()
	pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{
		Name: name,
		VolumeSource: corev1.VolumeSource{
			Secret: &corev1.SecretVolumeSource{SecretName: name, Items: items, DefaultMode: &mode},
		},
	})
	everyContainer(pod, func(container *corev1.Container) {
		// As a part of the volume, and not the volume itself, the files are files and not links.
		container.VolumeMounts = append(container.VolumeMounts,
			corev1.VolumeMount{Name: name, MountPath: s.path, SubPath: keysFolder})
	})
}

// Resources is the Secret.
func (s *secureShell) Resources() []Resource {
	return []Resource{resource(&corev1.Secret{ObjectMeta: s.job.meta(s.secretName())}, s.updateSecret)}
}

// updateSecret makes keys unless there are some: pods that have mounted them keep what they have, and later ones must
// be able to talk to them.
func (s *secureShell) updateSecret(secret *corev1.Secret) error {
	if secret.Data == nil {
		secret.Data = map[string][]byte{}
	}
	if len(secret.Data[privateKeyFile]) == 0 || len(secret.Data[authorizedKeysFile]) == 0 {
		private, public, err := s.keys()
		if err != nil {
			return err
		}
		secret.Data[privateKeyFile], secret.Data[publicKeyFile], secret.Data[authorizedKeysFile] = private, public, public
	}
	secret.Data[configFile] = []byte(s.config())
	return nil
}

// keys returns the user's keys, or new ones.
func (s *secureShell) keys() (private, public []byte, err error) {
	if s.privateKey != "" {
		return []byte(s.privateKey), []byte(s.publicKey), nil
	}
	publicKey, privateKey, err := ed25519.GenerateKey(nil)
	if err != nil {
		return nil, nil, fmt.Errorf("making a key: %w", err)
	}
	block, err := ssh.MarshalPrivateKey(privateKey, s.job.Namespace+"/"+s.job.Name)
	if err != nil {
		return nil, nil, fmt.Errorf("writing the private key: %w", err)
	}
	authorized, err := ssh.NewPublicKey(publicKey)
	if err != nil {
		return nil, nil, fmt.Errorf("writing the public key: %w", err)
	}
	return pem.EncodeToMemory(block), ssh.MarshalAuthorizedKey(authorized), nil
}

// config is the configuration of ssh: each host of the Job by its short name. The keys of the hosts themselves are not
// known beforehand, so they are not checked.
func (s *secureShell) config() string {
	var text strings.Builder
	text.WriteString("StrictHostKeyChecking no\nUserKnownHostsFile /dev/null\n")
	for i := range s.job.Spec.Tasks {
		for _, host := range s.job.hosts(&s.job.Spec.Tasks[i]) {
			fmt.Fprintf(&text, "Host %s\n  HostName %s\n  Port %d\n", host.name, host.address, s.port)
		}
	}
	return text.String()
}
