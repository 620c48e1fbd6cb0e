package netns

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/hopbed/hopbed/internal/procfs"
	"github.com/hopbed/hopbed/internal/reexec"
	"github.com/hopbed/hopbed/netem/emulator"
	"github.com/hopbed/hopbed/orchestrator/node/nodetest"
)

// echoPart is an agent that says who it is and answers every line until its
// input ends.
const echoPart = "hopbed-test-echo"

func TestMain(m *testing.M) {
	reexec.Dispatch(reexec.Table{
		emulator.Part:         func() int { return emulator.Main(os.Stdin, os.Stdout) },
		echoPart:              echo,
		"hopbed-test-conform": nodetest.Agent,
		"hopbed-test-deaf":    deaf,
		"hopbed-test-parent":  parent,
		"hopbed-test-control": controller,
		"hopbed-test-user":    unprivileged,
		"hopbed-test-root":    rootless,
	})
	os.Exit(m.Run())
}

func echo() int {
	ns, err := procfs.NetNS(os.Getpid())
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Printf("hello %d %s %s\n", os.Getpid(), ns, os.Getenv(TagVariable))
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		fmt.Printf("%s %s\n", os.Getenv("NODE"), in.Text())
	}
	fmt.Fprintln(os.Stderr, "end of input")
	return 0
}

// deaf ignores the end of its input.
func deaf() int {
	fmt.Println("hello")
	time.Sleep(time.Hour)
	return 0
}

// parent leaves a child behind that ignores everything.
func parent() int {
	child := exec.Command("/bin/sleep", "3600")
	if err := child.Start(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Printf("hello %d\n", child.Process.Pid)
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
	return 0
}
