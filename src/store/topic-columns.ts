import { TopicTemplate } from '../encoding/topic-template.ts';
import { emptyField, type Field, Form } from '../model/row.ts';
import type { TopicRule } from '../model/settings.ts';

/** The topic of selected rows, by the same bytes as the tail. */
export class TopicColumns {
  /** To be selected, one behind the other. */
  readonly names: readonly string[];
  readonly #of: (values: readonly (Buffer | null)[], first: number) => Buffer | null;

  constructor(topic: TopicRule) {
    if (topic.kind === 'fixed') {
      const fixed = Buffer.from(topic.topic);
      this.names = [];
      this.#of = () => fixed;
    } else if (topic.kind === 'column') {
      this.names = [topic.column];
      this.#of = (values, first) => values[first];
    } else {
      const template = new TopicTemplate(topic.template);
      const parts = template.columns.map(() => emptyField());
      this.names = template.columns;
      this.#of = (values, first) => {
        parts.forEach((part, n) => put(part, values[first + n]));
        return compose(template, parts);
      };
    }
  }

  /** `first`: where the columns begin. Null: the row names no topic. */
  of(values: readonly (Buffer | null)[], first: number): Buffer | null {
    return this.#of(values, first);
  }
}

/** All of `bytes`; null is SQL NULL. */
export function put(field: Field, bytes: Buffer | null, form: Form = Form.Text): void {
  field.form = bytes === null ? Form.Null : form;
  if (bytes === null) return;
  field.buffer = bytes;
  field.start = 0;
  field.end = bytes.length;
}

function compose(template: TopicTemplate, parts: readonly Field[]): Buffer | null {
  const bytes = template.measure(parts, 0);
  if (bytes < 0) return null;
  const out = Buffer.alloc(bytes);
  template.write(parts, 0, out);
  return out;
}
