# C simulation needs a C++ compiler and sed; all else Intel's FPGA SDK for OpenCL (aoc, aocl).
NAME := @name@
BOARD ?= @platform@
CXXFLAGS ?= -O1
STANDARD := -std=c++17 -ffp-contract=off -Wno-unknown-pragmas
AOCFLAGS := -clock=@clock@MHz -no-interleaving=default

.PHONY: csim emulate report aocx host run clean

csim: build/csim  ## the kernels at the same time, with channels of their depths
	build/csim

build/$(NAME).cpp: kernel/$(NAME).cl test/csim/opencl_as_cpp.sed
	@mkdir -p build
	sed -E -f test/csim/opencl_as_cpp.sed $< > $@

build/csim: test/test_bench.cpp test/csim/processes.cpp build/$(NAME).cpp kernel/$(NAME).h test/npy.h
	$(CXX) $(STANDARD) $(CXXFLAGS) -Itest/csim -Itest -Ikernel -Ibuild -o $@ $(filter %_bench.cpp %processes.cpp,$^) $(LDLIBS)

build/emulated.aocx: kernel/$(NAME).cl
	@mkdir -p build
	aoc -march=emulator -emulator-channel-depth-model=strict -o $@ $<

emulate: build/host build/emulated.aocx  ## in the emulator
	CL_CONFIG_CPU_EMULATE_DEVICES=1 build/host build/emulated.aocx

report: kernel/$(NAME).cl  ## loops, memories and resources, without a circuit: build/$(NAME)/reports
	@mkdir -p build
	aoc -rtl -report -board=$(BOARD) $(AOCFLAGS) -o build/$(NAME).aocr $<

build/$(NAME).aocx: kernel/$(NAME).cl
	@mkdir -p build
	aoc -board=$(BOARD) $(AOCFLAGS) -o $@ $<

aocx: build/$(NAME).aocx  ## the circuit; hours

build/host: host/host.cpp test/npy.h
	@mkdir -p build
	$(CXX) -std=c++17 -O2 -Itest $$(aocl compile-config) -o $@ $< $$(aocl link-config)

host: build/host  ## the host program

run: build/host build/$(NAME).aocx  ## on the board
	BANKS=1 build/host build/$(NAME).aocx

clean:
	rm -rf build
