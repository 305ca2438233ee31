// Clauses about the two georeferencing tags; they stand in the file's registry.

const MATRIX = 'Georeferencing, ModelTransformationTag';
const DIRECTORY = 'Georeferencing, GeoKeyDirectoryTag';

// Places in the directory.
const KEY = FORMAT.geoKeys.at;

FILE.clause('georef-tags', 'Georeferencing', 'no other GeoTIFF georeferencing tag appears', (facts) => {
  forbid(facts, OTHER_GEO);
});

function matrixOf(facts) {
  const values = facts.array(TAG.model_transformation);
  if (values.length !== FORMAT.transformation.length) throw new NotChecked('the matrix has not 16 elements');
  return values;
}

const elementOffset = (facts, element) => facts.valueOffset(TAG.model_transformation) + 8 * element;

FILE.clause('matrix', MATRIX, 'the matrix has its fixed elements', (facts) => {
  const values = matrixOf(facts);
  FORMAT.transformation.forEach(({ fixed, undefinedValue }, element) => {
    const found = Number(values[element]);
    if (Number.isFinite(found) && (!fixed || found === undefinedValue)) return;
    const expected = fixed ? float(undefinedValue) : 'finite';
    throw new Broken(`element ${element} to be ${expected}`, float(found), { offset: elementOffset(facts, element) });
  });
});

function keysOf(facts) {
  const values = facts.integers(TAG.geo_key_directory);
  if (values.length !== FORMAT.geoKeys.allowed.length) throw new NotChecked('the directory has not 16 shorts');
  return values;
}

const keyOffset = (facts, element) => facts.valueOffset(TAG.geo_key_directory) + 2 * element;

FILE.clause('keys', DIRECTORY, 'a four-short header and the three keys listed', (facts) => {
  const keys = keysOf(facts);
  FORMAT.geoKeys.allowed.forEach((values, element) => {
    if (!values || values.includes(Number(keys[element]))) return;
    throw new Broken(`element ${element} to be ${values.join(' or ')}`, keys[element], { offset: keyOffset(facts, element) });
  });
});

function expectKey(facts, element, values, text) {
  const found = keysOf(facts)[element];
  if (!values.includes(Number(found))) throw new Broken(text, found, { offset: keyOffset(facts, element) });
}

FILE.clause('model-type', DIRECTORY, 'GTModelTypeGeoKey is 0, 1 or 2', (facts) => {
  expectKey(facts, KEY.model_type, Object.values(FORMAT.modelType), '0, 1 or 2');
});

FILE.clause('raster-type', DIRECTORY, 'GTRasterTypeGeoKey is 1 or 2', (facts) => {
  expectKey(facts, KEY.raster_type, Object.values(FORMAT.rasterType), '1 or 2');
});

FILE.clause('crs-key', DIRECTORY, 'the key of the code agrees with GTModelTypeGeoKey', (facts) => {
  const keys = keysOf(facts);
  const { geographic_type: geographic, projected_cs_type: projected } = FORMAT.geoKey;
  const expected = keys[KEY.model_type] === FORMAT.modelType.projected ? projected : geographic;
  // Another key altogether, or another model type, is the matter of other clauses.
  if (!Object.values(FORMAT.modelType).includes(keys[KEY.model_type])) return;
  if (![geographic, projected].includes(keys[KEY.crs_key])) return;
  expectKey(facts, KEY.crs_key, [expected], expected);
});

const hasEpsgCode = (keys) => keys[KEY.epsg] >= FORMAT.minEpsg && keys[KEY.epsg] <= FORMAT.maxEpsg;

FILE.clause('epsg-range', DIRECTORY, 'the EPSG code is 1024 to 32766', (facts) => {
  const keys = keysOf(facts);
  if (keys[KEY.model_type] === FORMAT.modelType.undefined) throw new NotChecked('the file has no CRS');
  if (!hasEpsgCode(keys)) {
    throw new Broken(`${FORMAT.minEpsg} to ${FORMAT.maxEpsg}`, keys[KEY.epsg], { offset: keyOffset(facts, KEY.epsg) });
  }
});

function askRegistry(facts) {
  const keys = keysOf(facts);
  const isCrs = [FORMAT.modelType.projected, FORMAT.modelType.geographic].includes(keys[KEY.model_type]);
  if (!isCrs || !hasEpsgCode(keys)) throw new NotChecked('the file has no CRS that a registry could know');
  throw new NotChecked('needs a PROJ database, which this page has not; `rumi validate` asks one');
}

FILE.clause('epsg-registry', DIRECTORY, 'the EPSG registry defines the code', askRegistry);
FILE.clause('epsg-kind', 'Which codes are geographic', 'the model type is the one of the registry', askRegistry);

FILE.clause('undefined', 'Georeferencing, Undefined georeferencing', 'without CRS: code 0, fixed matrix', (facts) => {
  const keys = keysOf(facts);
  if (keys[KEY.model_type] !== FORMAT.modelType.undefined) throw new NotChecked('the file has a CRS');
  expectKey(facts, KEY.epsg, [0], 'code 0');
  const values = matrixOf(facts);
  FORMAT.transformation.forEach(({ fixed, undefinedValue }, element) => {
    if (fixed || values[element] === undefinedValue) return;
    const text = `element ${element} to be ${float(undefinedValue)}`;
    throw new Broken(text, float(values[element]), { offset: elementOffset(facts, element) });
  });
});
