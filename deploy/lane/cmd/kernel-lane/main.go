//go:build linux

package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/hopbed/hopbed/deploy/lane"
)

func main() {
	status, err := run(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "kernel-lane:", err)
		os.Exit(125)
	}
	os.Exit(status)
}

func run(args []string) (status int, err error) {
	f := flag.NewFlagSet("kernel-lane", flag.ExitOnError)
	f.Usage = func() {
		fmt.Fprintf(f.Output(), `kernel-lane [flags] program [argument…]   run a program as root in the lane's kernel
kernel-lane fetch                         fetch the kernel only

The exit status is the program's (126 for all above it), or 125 where the lane failed.
$%s names the kernel's package or folder, $%s the accelerator, $%s the cache.

`, lane.KernelVar, lane.AccelVar, lane.CacheVar)
		f.PrintDefaults()
	}
	var c lane.Config
	f.BoolVar(&c.HostRoot, "hostroot", false, "give the program the host's file system (changes stay in memory)")
	f.StringVar(&c.Share, "share", "", "a folder of the host's that the guest may write, at "+lane.SharePath)
	f.StringVar(&c.Dir, "dir", "", "the program's working folder")
	f.IntVar(&c.Memory, "memory", 0, "the machine's memory in `MiB` (default 1024)")
	f.DurationVar(&c.Timeout, "timeout", 5*time.Minute, "the machine's time to live")
	var modules, env list
	f.Var(&modules, "module", "load `\"NAME [PARAM=VALUE…]\"` with all that it depends on; may be repeated")
	f.Var(&env, "env", "`NAME=VALUE` for the program; may be repeated")
	network := f.Bool("network", true, "load the modules of emulated links (veth, tun, ifb, sch_netem …)")
	klog := f.Bool("klog", false, "print the kernel's messages to standard error at the end")
	if err := f.Parse(args); err != nil {
		return 0, err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, unix.SIGTERM)
	defer stop()
	switch {
	case f.NArg() == 0:
		f.Usage()
		return 0, fmt.Errorf("no program to run")
	case f.NArg() == 1 && f.Arg(0) == "fetch":
		k, err := lane.Fetch(ctx)
		if err == nil {
			fmt.Println("kernel", k.Version)
		}
		return 0, err
	}
	c.Modules, c.Env, c.Stdout = modules, env, os.Stdout
	if *network {
		c.Modules = append(append([]string{}, lane.Network...), modules...)
	}
	if *klog {
		c.KernelLog = os.Stderr
	}
	return lane.Run(ctx, c, f.Arg(0), f.Args()[1:]...)
}

// list is a flag that may be repeated.
type list []string

func (l *list) String() string     { return strings.Join(*l, ", ") }
func (l *list) Set(s string) error { *l = append(*l, s); return nil }
