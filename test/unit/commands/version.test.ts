import { expect, test } from 'vitest';
import { nodeTooOld, version } from '../../../src/commands/version.ts';

test('the version is that of the package', () => {
  expect(version).toMatch(/^\d+\.\d+\.\d+/);
});

test.each(['22.15.0', '22.20.1', '24.0.0', '100.1.0'])('Node.js %s will do', (node) => {
  expect(nodeTooOld(node)).toBeNull();
});

test.each(['22.14.9', '22.2.0', '20.20.2', '8.17.0'])('Node.js %s is too old, and that is said', (node) => {
  expect(nodeTooOld(node)).toBe(`cdc-relay needs Node.js 22.15 or later, and this is ${node}`);
});
