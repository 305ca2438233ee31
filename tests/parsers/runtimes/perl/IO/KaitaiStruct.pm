# What the generated Perl asks of the Kaitai Struct runtime library, declared only.
package IO::KaitaiStruct;
use strict;
use warnings;
our $VERSION = '0.011';
package IO::KaitaiStruct::Struct;
package IO::KaitaiStruct::Stream;
1;
