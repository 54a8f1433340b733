import eslint from '@eslint/js';
import boundaries from 'eslint-plugin-boundaries';
import tseslint from 'typescript-eslint';

/** Who may import whom: dependencies point inward (docs: README, "Shape of the code"). */
const layers = {
  model: ['model'],
  encoding: ['model', 'encoding'],
  delivery: ['model', 'encoding', 'delivery'],
  binlog: ['model', 'encoding', 'binlog'],
  kafka: ['model', 'encoding', 'kafka'],
  store: ['model', 'encoding', 'store'],
  relay: ['model', 'encoding', 'delivery', 'relay'],
  observability: ['model', 'observability'],
  config: ['model', 'config'],
  commands: ['model', 'encoding', 'delivery', 'binlog', 'kafka', 'store', 'relay', 'observability', 'config', 'commands'],
};

export default tseslint.config(
  { ignores: ['dist', 'node_modules', 'coverage', 'test-output'] },
  eslint.configs.recommended,
  {
    files: ['**/*.ts'],
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
  {
    files: ['src/**/*.ts'],
    plugins: { boundaries },
    settings: {
      'import/resolver': { typescript: { alwaysTryTypes: true }, node: { extensions: ['.ts', '.js'] } },
      'boundaries/elements': [
        ...Object.keys(layers).map((type) => ({ type, pattern: `src/${type}/**`, mode: 'full' })),
        { type: 'cli', pattern: 'src/cli.ts', mode: 'full' },
      ],
    },
    rules: {
      'boundaries/element-types': [
        'error',
        {
          default: 'disallow',
          rules: [
            ...Object.entries(layers).map(([from, allow]) => ({ from: [from], allow })),
            { from: ['cli'], allow: ['commands', 'model', 'observability', 'config'] },
          ],
        },
      ],
    },
  },
);
