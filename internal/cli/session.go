package cli

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	_ "k8s.io/client-go/plugin/pkg/client/auth" // the ways to log in that kubeconfigs may name
	"k8s.io/client-go/rest"
	"k8s.io/component-base/logs"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hekla.sh/hekla/internal/version"
	"hekla.sh/hekla/pkg/apis"
)

// session is one execution of a program: where it writes, the cluster that it is about, and the flags that most verbs share.
type session struct {
	genericiooptions.IOStreams
	// program is how a person starts the verbs, for sentences that say what to type next.
	program string
	// isVolcano makes defaults those of vcctl where they differ from kubectl's.
	isVolcano  bool
	scheme     *runtime.Scheme
	connection *genericclioptions.ConfigFlags
	// defaultNamespace is in force where the program has no other; "" leaves it to the rule.
	defaultNamespace string

	name          string
	namespaceFlag string
	allNamespaces bool
	dryRun        string
	output        *output // of the verb that runs
}

func newSession(program string, isVolcano bool, streams genericiooptions.IOStreams) *session {
	scheme := runtime.NewScheme()
	// Neither can fail: the types are the same in every execution, and the tests register them.
	_ = clientgoscheme.AddToScheme(scheme)
	_ = apis.AddToScheme(scheme)
	return &session{
		IOStreams: streams, program: program, isVolcano: isVolcano, scheme: scheme, connection: genericclioptions.NewConfigFlags(true),
	}
}

// rareConnectionFlags are there as in kubectl, and left out of the help so that the verb's own flags can be seen.
var rareConnectionFlags = []string{"as-uid", "as-user-extra", "certificate-authority", "client-certificate", "client-key", "disable-compression",
	"insecure-skip-tls-verify", "tls-server-name", "token"}

// addConnectionFlags adds what says which cluster is meant, and as whom it is asked.
func (s *session) addConnectionFlags(flags *pflag.FlagSet) {
	c := s.connection
	kubeconfig, master := c.KubeConfig, c.APIServer
	c.KubeConfig, c.APIServer, c.Namespace, c.CacheDir = nil, nil, nil, nil // no flags; the first two get those of vcctl
	c.AddFlags(flags)
	c.KubeConfig, c.APIServer = kubeconfig, master
	for _, name := range rareConnectionFlags {
		_ = flags.MarkHidden(name)
	}
	flags.StringVarP(kubeconfig, "kubeconfig", "k", "", "path of the kubeconfig")
	flags.StringVarP(master, "master", "s", "", "address of the API server (also --server)")
}

// addLogFlags adds what says how much the libraries log, such as the requests that are sent: -v, --vmodule and
// --log-flush-frequency, as vcctl and kubectl have them.
func addLogFlags(command *cobra.Command) {
	logs.AddFlags(command.PersistentFlags())
	command.PersistentPreRun = func(*cobra.Command, []string) { logs.InitLogs() }
}

// synonyms are flags that have another name in a sibling verb of vcctl, or in kubectl.
var synonyms = map[string]string{"server": "master", "file": "filename", "format": "output"}

// addSynonyms lets the flags of a command be given by their other names, and with underscores, as vcctl does.
func addSynonyms(command *cobra.Command) {
	command.SetGlobalNormalizationFunc(func(flags *pflag.FlagSet, name string) pflag.NormalizedName {
		name = strings.ReplaceAll(name, "_", "-")
		if synonym, ok := synonyms[name]; ok {
			name = synonym
		}
		return pflag.NormalizedName(name)
	})
}

// shorthands are those letters that the Slurm-like programs swap.
type shorthands struct{ namespace, name string }

var (
	vcctlShorthands = shorthands{namespace: "n", name: "N"}
	slurmShorthands = shorthands{namespace: "N", name: "n"}
)

func (s *session) addNamespaceFlag(command *cobra.Command, letters shorthands) {
	usage := "namespace; without it that of the kubeconfig's context"
	if s.isVolcano {
		usage = `namespace; without it "default"`
	}
	command.Flags().StringVarP(&s.namespaceFlag, "namespace", letters.namespace, "", usage)
}

func (s *session) addAllNamespacesFlag(command *cobra.Command) {
	command.Flags().BoolVarP(&s.allNamespaces, "all-namespaces", "A", false, "in all namespaces")
}

// addNameFlag adds the flag by which vcctl takes the name that may be an argument as well.
func (s *session) addNameFlag(command *cobra.Command, letter, usage string) {
	command.Flags().StringVarP(&s.name, "name", letter, "", usage)
}

func (s *session) addDryRunFlag(command *cobra.Command) {
	command.Flags().StringVar(&s.dryRun, "dry-run", "none", "none, client (nothing is sent) or server (everything is checked, nothing is kept)")
	command.Flags().Lookup("dry-run").NoOptDefVal = "client"
}

// namespace is the one that is meant.
func (s *session) namespace() (string, error) {
	if s.namespaceFlag != "" {
		return s.namespaceFlag, nil
	}
	if s.isVolcano {
		return cmp.Or(s.defaultNamespace, metav1.NamespaceDefault), nil
	}
	namespace, _, err := s.connection.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return "", s.explain(err)
	}
	return namespace, nil
}

// scope is the namespace to list, "" for all.
func (s *session) scope() (string, error) {
	if s.allNamespaces {
		return "", nil
	}
	return s.namespace()
}

// names are the objects that are meant, at least one.
func (s *session) names(kind string, arguments []string) ([]string, error) {
	switch {
	case s.name != "" && len(arguments) > 0:
		return nil, fmt.Errorf("--name=%s and the argument %s both name a %s; give one of them", s.name, arguments[0], kind)
	case s.name != "":
		return []string{s.name}, nil
	case len(arguments) == 0:
		return nil, fmt.Errorf("which %s? Give its name; %q lists them", kind, s.program+" "+kind+" list")
	}
	return arguments, nil
}

// config is how the API server is reached.
func (s *session) config() (*rest.Config, error) {
	config, err := s.connection.ToRESTConfig()
	if err != nil {
		return nil, s.explain(err)
	}
	config = rest.CopyConfig(config)
	config.UserAgent = "hekla/" + version.Version
	config.WarningHandler = rest.NewWarningWriter(s.ErrOut, rest.WarningWriterOptions{Deduplicate: true})
	return config, nil
}

// client reaches the API server. What is written is checked strictly: a field that nobody reads is refused.
func (s *session) client() (client.WithWatch, error) {
	config, err := s.config()
	if err != nil {
		return nil, err
	}
	api, err := client.NewWithWatch(config, client.Options{Scheme: s.scheme})
	if err != nil {
		return nil, s.explain(err)
	}
	return api, nil
}

// write carries out one request that changes something, unless it is a dry run, and tells of it: with the object in the format
// that was asked for, else with a sentence.
func (s *session) write(object client.Object, done string, request func(client.Client) error) error {
	switch s.dryRun {
	case "client":
		done += " (dry run)"
	case "", "none", "server":
		api, err := s.client()
		if err != nil {
			return err
		}
		var writer client.Client = client.WithFieldValidation(api, metav1.FieldValidationStrict)
		if s.dryRun == "server" {
			writer = client.NewDryRunClient(writer)
			done += " (server dry run)"
		}
		if err := request(writer); err != nil {
			return s.explain(err)
		}
	default:
		return fmt.Errorf("--dry-run=%s: it must be none, client or server", s.dryRun)
	}
	if s.output.isTable() {
		_, err := fmt.Fprintln(s.Out, done)
		return err
	}
	return s.output.print(s, object)
}

// create creates an object.
func (s *session) create(ctx context.Context, object client.Object, done string) error {
	return s.write(object, done, func(api client.Client) error { return api.Create(ctx, object) })
}

// delete deletes an object of a kind by its name.
func (s *session) delete(ctx context.Context, object client.Object, done string) error {
	return s.write(object, done, func(api client.Client) error { return api.Delete(ctx, object) })
}

// age says how long ago something was.
func age(at metav1.Time) string {
	if at.IsZero() {
		return none
	}
	return humanDuration(time.Since(at.Time))
}
