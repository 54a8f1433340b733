/**
 * Text that may hold what others wrote, as a terminal may have it: line ends stay, every other control character, and
 * those that change the direction of what follows, become `\u001b` and the like; within JSON that means the same.
 */
export function terminalText(text: string): string {
  return text.replaceAll(/(?![\n\t])\p{Cc}|\p{Cf}|[\u2028\u2029]/gu, (character) => {
    const units = Array.from({ length: character.length }, (_, index) => character.charCodeAt(index));
    return units.map((unit) => `\\u${unit.toString(16).padStart(4, '0')}`).join('');
  });
}
