# C simulation needs a C++ compiler; all else AMD's Vitis (v++, vitis_hls) and XRT.
NAME := @name@
PLATFORM ?= @platform@
TARGET ?= hw
CXXFLAGS ?= -O1
STANDARD := -std=c++17 -ffp-contract=off -Wno-unknown-pragmas
XRT := $(XILINX_XRT)

.PHONY: csim hls xclbin host run emulate clean

csim: build/csim  ## the kernel's processes at the same time, with FIFOs of their depths
	build/csim

build/csim: test/test_bench.cpp test/csim/processes.cpp kernel/$(NAME).cpp kernel/$(NAME).h test/npy.h
	@mkdir -p build
	$(CXX) $(STANDARD) $(CXXFLAGS) -DRUN=$(NAME)_processes -Itest/csim -Itest -Ikernel -o $@ $(filter %_bench.cpp %processes.cpp,$^) $(LDLIBS)

hls:  ## Vitis HLS: its C simulation, synthesis and co-simulation, with reports
	vitis_hls -f hls.tcl

build/$(TARGET)/$(NAME).xo: kernel/$(NAME).cpp kernel.cfg
	@mkdir -p $(@D)
	v++ --compile --target $(TARGET) --platform $(PLATFORM) --kernel $(NAME) --config kernel.cfg -o $@ $<

build/$(TARGET)/$(NAME).xclbin: build/$(TARGET)/$(NAME).xo connectivity.cfg
	v++ --link --target $(TARGET) --platform $(PLATFORM) --config kernel.cfg --config connectivity.cfg -o $@ $<

xclbin: build/$(TARGET)/$(NAME).xclbin  ## the circuit; hours for TARGET=hw

build/host: host/host.cpp test/npy.h
	@mkdir -p build
	$(CXX) -std=c++17 -O2 -Itest -I$(XRT)/include -o $@ $< -L$(XRT)/lib -lxrt_coreutil -pthread

host: build/host  ## the host program

run: build/host build/$(TARGET)/$(NAME).xclbin  ## on the board
	build/host build/$(TARGET)/$(NAME).xclbin

emulate:  ## in the emulator of the hardware
	emconfigutil --platform $(PLATFORM) --od build
	$(MAKE) build/host build/hw_emu/$(NAME).xclbin TARGET=hw_emu
	cd build && XCL_EMULATION_MODE=hw_emu ./host hw_emu/$(NAME).xclbin ..

clean:
	rm -rf build hls _x .Xil
