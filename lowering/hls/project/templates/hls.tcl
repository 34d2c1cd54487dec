# vitis_hls -f hls.tcl: C simulation, synthesis, co-simulation
open_project -reset hls
set_top @name@
add_files kernel/@name@.cpp -cflags "-Ikernel"
add_files -tb test/test_bench.cpp -cflags "-Itest -Ikernel -Wno-unknown-pragmas"
open_solution -reset -flow_target vitis solution
set_part {@part@}
create_clock -period @period@ -name default
csim_design -argv [pwd]
csynth_design
cosim_design -argv [pwd]
exit
