# OpenVINO: the backend opens its C library by name. It finds ours, beside it, which sets properties on the real one.
target_sources(executor_runner PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/openvino_properties.cpp)
add_library(openvino_c SHARED openvino_c.cpp)
set_target_properties(openvino_c PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/runner/lib
  INSTALL_RPATH "$ORIGIN" BUILD_WITH_INSTALL_RPATH ON)
get_filename_component(real_library "${OPENVINO_C_LIBRARY}" NAME)
target_link_libraries(openvino_c PRIVATE executorch::runtime)
target_compile_definitions(openvino_c PRIVATE REAL_LIBRARY="${real_library}")
target_compile_options(openvino_c PRIVATE -Wall -Wextra "-ffile-prefix-map=${CMAKE_CURRENT_SOURCE_DIR}=runner")
# Needed, so that all other functions of the real one are found through ours.
target_link_options(openvino_c PRIVATE "LINKER:--no-as-needed,${OPENVINO_C_LIBRARY}")
