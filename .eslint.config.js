import eslint from '@eslint/js';
import tseslint from 'typescript-eslint';

/** Who may import whom: dependencies point inward. A layer that is not named here is forbidden. */
const layers = {
  model: [],
  encoding: ['model'],
  delivery: ['model', 'encoding'],
  mysql: ['model'],
  binlog: ['model', 'encoding', 'mysql'],
  kafka: ['model', 'encoding'],
  store: ['model', 'encoding', 'mysql'],
  retention: ['model', 'store'],
  limits: ['model', 'store'],
  verify: ['model', 'encoding', 'kafka', 'store'],
  adopt: ['model', 'encoding', 'config', 'kafka', 'binlog', 'store'],
  check: ['model', 'mysql', 'binlog', 'kafka', 'store'],
  relay: ['model', 'encoding', 'delivery'],
  observability: ['model'],
  http: ['model', 'observability'],
  /** Bundled for browsers: shapes of answers, and how the command line writes numbers. */
  page: ['http', 'observability', 'commands'],
  config: ['model'],
};

/** Which layers may see a library: the rest of the code sees ports. */
const libraries = {
  '@vlasky/zongji': ['binlog'],
  kafkajs: ['kafka'],
  mysql2: ['mysql', 'binlog', 'store', 'commands'],
  'iconv-lite': ['encoding'],
  pino: ['observability'],
  'prom-client': ['observability'],
  fastify: ['http'],
  yaml: ['config'],
  commander: ['commands'],
};

function inward(layer, allowed) {
  const others = [...new Set([...Object.keys(layers), 'commands'])].filter(
    (other) => other !== layer && !allowed.includes(other),
  );
  const foreign = Object.entries(libraries).flatMap(([name, users]) => (users.includes(layer) ? [] : [name]));
  return {
    files: [`src/${layer}/**/*.{ts,tsx}`],
    rules: {
      'no-restricted-imports': [
        'error',
        {
          patterns: [
            {
              group: others.flatMap((other) => [`**/${other}/*`, `**/${other}/**`]),
              message: `${layer} may import only: ${allowed.join(', ')}`,
            },
            ...(foreign.length === 0
              ? []
              : [
                  {
                    group: foreign.flatMap((name) => [name, `${name}/*`]),
                    message: `${layer} sees ports, not this library`,
                  },
                ]),
          ],
        },
      ],
    },
  };
}

export default tseslint.config(
  { ignores: ['dist', 'node_modules', 'coverage', 'test-output'] },
  eslint.configs.recommended,
  {
    files: ['**/*.{ts,tsx}'],
    extends: [tseslint.configs.strictTypeChecked],
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    rules: {
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true, allowBoolean: true }],
      '@typescript-eslint/no-non-null-assertion': 'off',
      '@typescript-eslint/no-confusing-void-expression': ['error', { ignoreArrowShorthand: true }],
      '@typescript-eslint/no-unnecessary-condition': ['error', { allowConstantLoopConditions: true }],
      'no-console': 'error',
    },
  },
  { files: ['**/*.{js,mjs}'], languageOptions: { globals: { process: 'readonly', console: 'readonly' } } },
  ...Object.entries(layers).map(([layer, allowed]) => inward(layer, allowed)),
);
