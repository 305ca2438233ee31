#include "kaitaistruct.h"
