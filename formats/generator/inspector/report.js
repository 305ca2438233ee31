// Checks by clause. Ids, sections and wording are those of `rumi.validate`.

class Registry {
  constructor(prefix) {
    this.prefix = prefix;
    this.checks = [];
  }

  clause(name, section, text, check) {
    this.checks.push([{ id: `${this.prefix}.${name}`, section, text }, check]);
  }

  run(facts) {
    return this.checks.map(([clause, check]) => {
      try {
        check(facts);
      } catch (error) {
        if (error instanceof Broken) {
          const { expected, found, offset, reason } = error;
          return { clause, status: 'failed', expected, found, offset, reason };
        }
        if (error instanceof NotChecked) return { clause, status: 'not checked', reason: error.message };
        throw error;
      }
      return { clause, status: 'passed', reason: '' };
    });
  }

  skip(reason) {
    return this.checks.map(([clause]) => ({ clause, status: 'not checked', reason }));
  }
}
