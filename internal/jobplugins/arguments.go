package jobplugins

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// parse reads arguments in the form of Go's flag package, which is what manifests use: --name=value, -name=value, or
// the value as an argument of its own. Arguments that are not declared are noted by their names and passed over, each
// with what may be its value.
func (j jobView) parse(arguments []string, declare func(*flag.FlagSet)) error {
	flags := flag.NewFlagSet("", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	declare(flags)
	meant, ignored := known(flags, arguments)
	*j.ignored = append(*j.ignored, ignored...)
	err := flags.Parse(meant)
	if err == nil && flags.NArg() > 0 {
		// Not quoted: it may be a private key gone astray.
		err = fmt.Errorf("argument %d does not begin with --", len(arguments)-flags.NArg()+1)
	}
	if err == nil {
		return nil
	}
	if errors.Is(err, flag.ErrHelp) {
		err = errors.New("help cannot be asked for here")
	}
	var names []string
	flags.VisitAll(func(argument *flag.Flag) { names = append(names, "--"+argument.Name) })
	if len(names) == 0 {
		return fmt.Errorf("%w; the plugin takes no arguments", err)
	}
	return fmt.Errorf("%w; the arguments are %s", err, strings.Join(names, ", "))
}

// known returns the arguments without those that the flags do not have, and the names of these.
func known(flags *flag.FlagSet, arguments []string) (left, ignored []string) {
	for i := 0; i < len(arguments); i++ {
		argument := arguments[i]
		name, _, hasValue := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(argument, "-"), "-"), "=")
		declared := flags.Lookup(name)
		switch isFlag := len(argument) > 1 && argument[0] == '-' && name != "" && name[0] != '-'; {
		case !isFlag:
			// Nothing behind it is read as a flag. Parse would quote what begins with three dashes, as private keys do.
			return append(append(left, "--"), arguments[i:]...), ignored
		case declared == nil && name != "h" && name != "help":
			ignored = append(ignored, name)
			if !hasValue && i+1 < len(arguments) && !strings.HasPrefix(arguments[i+1], "-") {
				i++
			}
		default:
			left = append(left, argument)
			if declared != nil && !hasValue && !takesNoValue(declared) && i+1 < len(arguments) {
				i++
				left = append(left, arguments[i])
			}
		}
	}
	return left, ignored
}

// takesNoValue reports whether a flag is switched on by its name alone.
func takesNoValue(declared *flag.Flag) bool {
	value, is := declared.Value.(interface{ IsBoolFlag() bool })
	return is && value.IsBoolFlag()
}

// portInRange returns an error if the number cannot be a port.
func portInRange(argument string, port int) error {
	if messages := validation.IsValidPortNum(port); len(messages) > 0 {
		return fmt.Errorf("--%s is %d: %s", argument, port, messages[0])
	}
	return nil
}
