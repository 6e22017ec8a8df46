// DDLAUNCH_API marks what the worker library lets its users link against; everything else in it is hidden.
#pragma once

#define DDLAUNCH_API __attribute__((visibility("default")))
